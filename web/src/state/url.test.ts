import { describe, expect, test } from "vitest";
import { equals, filterOf, format, INITIAL, parse, type ViewState } from "./url";

describe("the state in the URL", () => {
  test("comes back as it went, whatever is in it", () => {
    const state: ViewState = {
      places: ["/data/a b.jsonl", "s3://bucket/x?y&z=1"],
      q: 'reward > 0.5 AND data_source contains "a+b & c#"',
      clauses: ["step >= 10 AND step <= 20", 'status == "dropped"'],
      sort: "-reward,step",
      columns: ["step", "reward.format"],
      list: "groups",
      search: [
        { kind: "all", text: "a:b\n∀ c", regex: true, case: false, channels: ["assistant", "tool_call"] },
        { kind: "none", text: ":", regex: false, case: true, channels: [] },
      ],
      rollout: "8d0fb2a1c38d0fb2a1c38d0fb2a1c312",
      tab: "diff",
      message: 0,
      range: [3, 14],
      channel: "tool_call",
      other: "00000000000000000000000000000001",
      curve: "pass_at_k",
      series: "data_source",
      against: ["/data/other"],
      heat: "entropy",
      token: "8d0fb2a1.412",
      beside: true,
      inline: true,
      follow: true,
    };
    expect(parse(format(state))).toEqual(state);
  });

  test("is short where everything is as usual", () => {
    expect(format(INITIAL)).toBe("");
    expect(format({ ...INITIAL, places: ["a"] })).toBe("?place=a");
  });

  test("is read leniently", () => {
    const state = parse("?tab=nonsense&list=&m=-1&c=5&s=broken&place=a");
    expect(state).toEqual({ ...INITIAL, places: ["a"] });
  });
});

test("clauses narrow what was typed", () => {
  expect(filterOf({ q: "", clauses: [] })).toBe("");
  expect(filterOf({ q: "a == 1 OR b == 2", clauses: [] })).toBe("a == 1 OR b == 2");
  expect(filterOf({ q: "a == 1 OR b == 2", clauses: ["c == 3"] })).toBe("(a == 1 OR b == 2) AND (c == 3)");
});

test("values become filters", () => {
  const cases: [unknown, string][] = [
    ["math", 'x == "math"'],
    ['a"b\\c', 'x == "a\\"b\\\\c"'],
    [3, "x == 3"],
    [true, "x == true"],
    [null, "x is null"],
    ["-9007199254740993", "x == -9007199254740993"],
  ];
  for (const [value, filter] of cases) expect(equals("x", value)).toBe(filter);
});
