import { expect, test } from "vitest";
import { compare, type Segment } from "./compare";
import { diffOf, rowsOf } from "./rows";

const SIGNS = { same: "=", removed: "-", added: "+" };
const drawn = (segments: Segment[]) => segments.map(({ kind, text }) => SIGNS[kind] + text);
const side = (segments: Segment[], without: "added" | "removed") => segments.filter(({ kind }) => kind !== without).map(({ text }) => text).join("");

test.each([
  ["", "", []],
  ["the same", "the same", ["=the same"]],
  ["the answer is 12.", "the answer is 13.", ["=the answer is ", "-12", "+13", "=."]],
  ["one two three", "one three", ["=one ", "-two ", "=three"]],
  ["", "new", ["+new"]],
  ["old", "", ["-old"]],
  // A word is changed as a whole, though it begins and ends the same.
  ["see 1204 here", "see 1304 here", ["=see ", "-1204", "+1304", "=here"].map((part) => part.replace("=here", "= here"))],
  // Half of a surrogate pair is never cut off.
  ["a 😀 b", "a 😁 b", ["=a ", "-😀", "+😁", "= b"]],
])("%j against %j", (left, right, expected) => {
  expect(drawn(compare(left, right))).toEqual(expected);
});

test.each([
  ["by lines", 30_000],
  ["by blocks", 250_000],
])("long texts are compared %s and lose nothing", (_, lines) => {
  const text = (word: string) => Array.from({ length: lines }, (__, i) => (i % 50_000 === 7 ? `${word} ${i}` : `line ${i}`)).join("\n");
  const [left, right] = [`here ${text("left")} end`, `there ${text("right")} stop`];
  const segments = compare(left, right);
  expect(side(segments, "added")).toBe(left);
  expect(side(segments, "removed")).toBe(right);
  expect(segments.some(({ kind, text: same }) => kind === "same" && same.length > 10_000)).toBe(true);
});

test("a row ends where both have a line end, and equal lines are one row", () => {
  let n = 0;
  const rows = rowsOf(compare("a\nb\nc 1 d\ne\nf\n", "a\nb\nc 2 d\ne\nf\n"), () => n++);
  expect(rows.map(({ change, segments }) => [change, drawn(segments).join("|")])).toEqual([
    [null, "=a\n|=b\n"],
    [0, "=c |-1|+2|= d\n"],
    [null, "=e\nf\n"],
  ]);
});

test("whole lines that changed stand alone", () => {
  let n = 0;
  const rows = rowsOf(compare("a\nb\n", "a\nnew\nb\n"), () => n++);
  expect(rows.map(({ change, segments }) => [change, drawn(segments).join("|")])).toEqual([
    [null, "=a\n"],
    [0, "+new\n"],
    [null, "=b\n"],
  ]);
});

test("the first difference is counted in characters over the messages before it", () => {
  const prompt = { message: 0, channel: "user", text: "question?" };
  const answer = (text: string) => ({ message: 1, channel: "assistant", text });
  const result = diffOf([prompt, answer("it is 12")], [prompt, answer("it is 13")]);
  expect(result.sameStart).toBe("question?it is ".length);
  expect(result.changes).toBe(1);
  expect(result.blocks.map(({ rows }) => rows.map(({ change }) => change))).toEqual([[null], [0]]);
});

test("two equal rollouts have no difference", () => {
  const pieces = [{ message: 0, channel: "user", text: "q" }];
  expect(diffOf(pieces, pieces).changes).toBe(0);
});
