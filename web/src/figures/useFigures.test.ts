import { expect, test } from "vitest";
import type { StepPoint } from "@/curves/metrics";
import { total, totals } from "./useFigures";

const point = (fields: Partial<StepPoint>): StepPoint => ({ step: 0, n: 0, n_prompts: 0, n_groups: 0, truncated: 0, dead_groups: 0, ...fields });

test("means count as often as they have rollouts or groups", () => {
  const sum = total("a", [
    point({ n: 1, n_groups: 1, reward_mean: 1, pass_at_k: 1, truncated: 1, dead_groups: 1 }),
    point({ n: 3, n_groups: 3, reward_mean: 0, pass_at_k: 0, lag_mean: 2 }),
    point({ n: 4, n_groups: 0, reward_mean: null }),
  ]);
  expect(sum).toEqual({ series: "a", n: 8, reward: 0.25, pass: 0.25, length: null, truncated: 1 / 8, dead: 0.25, lag: 2 });
});

test("series with the most rollouts come first", () => {
  const some = totals([point({ series: "a", n: 1 }), point({ series: "b", n: 5 }), point({ series: "a", n: 3 })]);
  expect(some.map((one) => [one.series, one.n])).toEqual([
    ["b", 5],
    ["a", 4],
  ]);
});
