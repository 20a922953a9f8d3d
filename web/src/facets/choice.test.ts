import { describe, expect, test } from "vitest";
import { choiceOf, clausesOf, NOTHING, turned, type Choice } from "./choice";

describe("what a facet chose", () => {
  const cases: [string, Choice, boolean, string[]][] = [
    ["x", { ...NOTHING, only: ["math"] }, false, ['x == "math"']],
    ["x", { ...NOTHING, only: ['a"b\\c, "d', "e"] }, false, ['x in ("a\\"b\\\\c, \\"d", "e")']],
    ["x", { ...NOTHING, only: [null] }, true, ["x is null"]],
    ["x", { ...NOTHING, only: [3, null] }, true, ["x == 3 or x is null"]],
    ["x", { ...NOTHING, only: [3, -1.5, null] }, true, ["x in (3, -1.5) or x is null"]],
    ["x", { ...NOTHING, only: ["-9007199254740993"] }, false, ["x == -9007199254740993"]],
    ["x", { ...NOTHING, not: ["a", null] }, false, ['x != "a"', "x is not null"]],
    ["x", { ...NOTHING, not: [true] }, true, ["x != true or x is null"]],
    ["reward.format", { ...NOTHING, range: { from: 0.5, to: 1, open: true } }, false, ["reward.format >= 0.5 and reward.format < 1"]],
    ["x", { ...NOTHING, range: { from: null, to: 1e-7, open: false } }, false, ["x <= 1e-7"]],
    ["odd name", { ...NOTHING, only: ["a"], range: { from: 2, to: null, open: false } }, false, ['`odd name` == "a"', "`odd name` >= 2"]],
  ];
  test.each(cases)("%s %j is kept as clauses", (field, choice, withNulls, clauses) => {
    expect(clausesOf(field, choice, withNulls)).toEqual(clauses);
    expect(choiceOf(field, [...clauses, "other == 1"])).toEqual({ choice, others: ["other == 1"] });
  });

  test("clauses that are about something else are left alone", () => {
    for (const clause of ['xy == "a"', 'x == "a" and y == "b"', "x contains 'a'", "rewardXformat >= 1", "x > 3", "not x"]) {
      expect(choiceOf("x", [clause]).others).toEqual([clause]);
      expect(choiceOf("reward.format", [clause]).others).toEqual([clause]);
    }
  });

  test("a value is in one list at most", () => {
    const one = turned(NOTHING, "only", "a");
    expect(one.only).toEqual(["a"]);
    expect(turned(one, "not", "a")).toEqual({ ...NOTHING, not: ["a"] });
    expect(turned(one, "only", "a")).toEqual(NOTHING);
  });
});
