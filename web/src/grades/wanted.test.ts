import { expect, test } from "vitest";
import { bodyOf, costOf, NEW_METRIC, type Wanted } from "./wanted";

const WANTED: Wanted = { metrics: ["accuracy"], own: [], rows: "filter", limit: 100, model: "", baseUrl: "" };

test("the server is asked for what was chosen, and left its own choices", () => {
  expect(bodyOf(WANTED, "step == 1", "x")).toEqual({ filter: "step == 1", metrics: ["accuracy"], limit: 100 });
  expect(bodyOf({ ...WANTED, rows: "open", model: " m ", baseUrl: "http://a" }, "", "x")).toEqual({
    ids: ["x"],
    metrics: ["accuracy"],
    limit: 100,
    model: "m",
    base_url: "http://a",
  });
});

test("a metric of one's own has the range of its kind", () => {
  const own = (more: object) => bodyOf({ ...WANTED, metrics: [], own: [{ ...NEW_METRIC, name: " brevity ", description: "short", ...more }] }, "", null).metrics;
  expect(own({})).toEqual([{ name: "brevity", description: "short", kind: "float", min: 0, max: 1 }]);
  expect(own({ kind: "int", min: "1", max: "" })).toEqual([{ name: "brevity", description: "short", kind: "int", min: 1 }]);
  expect(own({ kind: "bool" })).toEqual([{ name: "brevity", description: "short", kind: "bool" }]);
});

test("a price is for a million tokens", () => {
  const tokens = { input_tokens: 2_000_000, output_tokens: 500_000 };
  expect(costOf(tokens, "3", "10")).toBe(11);
  expect(costOf(tokens, "3", "")).toBe(6);
  expect(costOf(tokens, "", "x")).toBeNull();
});
