import { expect, test } from "vitest";
import { counterpart, deadReason, deviation } from "./figures";
import type { Sibling } from "./useGroup";

const group = (...rewards: (number | null)[]) => rewards.map((reward, i) => ({ id: String(i), reward }) as Sibling);

test.each([
  ["the best with another reward", [0, 0.5, 1], "0", "2"],
  ["the worst, for the best itself", [0.5, 0, 1], "2", "1"],
  ["the best of those that differ", [1, 1, 0.5, 0], "0", "3"],
  ["the next one, where all are equal", [1, 1, 1], "0", "1"],
  ["the best, for one without a reward", [null, 0.2, 0.4], "0", "2"],
  ["nobody, for one alone", [1], "0", null],
])("a rollout is held against %s", (_, rewards, id, expected) => {
  expect(counterpart(group(...rewards), id)).toBe(expected);
});

test("a dead group says why", () => {
  expect(deadReason(group(0, 0, 0), true)).toBe("All 3 rewards are 0: every advantage is zero, so there is no gradient.");
  expect(deadReason(group(0, 1), false)).toBe(null);
  expect(deadReason(group(1), true)).toBe(null);
});

test("deviation is of all, not of a sample", () => {
  expect(deviation([0, 1])).toBe(0.5);
  expect(deviation([])).toBe(null);
});
