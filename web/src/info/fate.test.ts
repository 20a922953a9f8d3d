import { expect, test } from "vitest";
import { ageOf, fateOf } from "./fate";
import { clauseOf } from "./Facts";

test.each([
  [{ status: null, reason: null, trainedStep: null }, "The row does not say what became of it."],
  [{ status: "trained", reason: null, trainedStep: 14 }, "Trained on at step 14."],
  [{ status: "dropped", reason: "no_variance", trainedStep: null }, "Dropped: the trainer never saw it. Reason: no_variance, all rewards of its group were equal."],
  [{ status: "rejected", reason: "bad json", trainedStep: null }, "Rejected: it did not get in. Reason: bad json."],
  [{ status: "on_hold", reason: null, trainedStep: null }, "on_hold."],
])("%j reads", (known, expected) => {
  expect(fateOf(known)).toBe(expected);
});

test("the age of its weights is told as far as it is known", () => {
  expect(ageOf(null, null, false)).toBe(null);
  expect(ageOf(30, 1, false)).toBe("Sampled by version 30, 1 step behind what was trained.");
  expect(ageOf(30, null, true)).toBe("Its first token was sampled by version 30, later ones by others.");
});

test.each([
  [{ name: "step", value: 3 }, "step == 3"],
  [{ name: "data_source", value: 'a "b"' }, 'data_source == "a \\"b\\""'],
  [{ name: "reason", value: null }, "reason is null"],
  [{ name: "reward.format", value: 0.5 }, "reward.format == 0.5"],
  [{ name: "odd name", value: 1 }, null],
  [{ name: "parts", value: [1] }, null],
  [{ name: "copy 1", value: null, isColumn: false }, null],
])("%j filters by %s", (fact, expected) => {
  expect(clauseOf(fact)).toBe(expected);
});
