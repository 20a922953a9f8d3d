import { expect, test } from "vitest";
import { align, commonStart, type Piece } from "./align";

const piece = (channel: string, text: string, message = 0): Piece => ({ channel, text, message });

/** Pairs as `left/right`, with a dash where there is none. */
function check(left: Piece[], right: Piece[], expected: string[]) {
  expect(align(left, right).map((pair) => `${pair.left?.text ?? "-"}/${pair.right?.text ?? "-"}`)).toEqual(expected);
}

test("equal parts stand beside each other", () => {
  check([piece("user", "q"), piece("assistant", "a")], [piece("user", "q"), piece("assistant", "a")], ["q/q", "a/a"]);
});

test("an extra tool call leaves what follows beside what it is like", () => {
  const left = [piece("user", "q"), piece("tool_call", "search cats"), piece("tool_result", "nine cats"), piece("assistant", "nine")];
  const right = [piece("user", "q"), piece("tool_call", "open dogs"), piece("tool_result", "no page"), piece("tool_call", "search cats"), piece("tool_result", "nine cats"), piece("assistant", "nine")];
  check(left, right, ["q/q", "-/open dogs", "-/no page", "search cats/search cats", "nine cats/nine cats", "nine/nine"]);
});

test("different roles are never held against each other", () => {
  check([piece("reasoning", "same words")], [piece("assistant", "same words")], ["same words/-", "-/same words"]);
});

test("answers without a common word are still held against each other", () => {
  check([piece("assistant", "yes")], [piece("assistant", "no")], ["yes/no"]);
});

test("one side may be empty", () => {
  check([], [piece("user", "q")], ["-/q"]);
  check([], [], []);
});

test("hundreds of parts are paired in order, each once", () => {
  const many = (word: string) => Array.from({ length: 500 }, (_, i) => piece(i % 2 ? "tool_result" : "tool_call", `${word} ${i}`));
  const pairs = align(many("a"), many("b"));
  expect(pairs.length).toBe(500);
  expect(pairs.every(({ left, right }) => left?.channel === right?.channel)).toBe(true);
});

test.each([
  [[], [], 0],
  [[1, 2, 3], [1, 2, 4], 2],
  [[1, 2], [1, 2, 3], 2],
  [[5], [6], 0],
])("the common start of %j and %j is %i", (left, right, expected) => {
  expect(commonStart(left, right)).toBe(expected);
});
