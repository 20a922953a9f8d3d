import { describe, expect, test } from "vitest";
import { draw, stepsClause, stepsOf, type StepPoint } from "./metrics";

const point = (step: number, series: string | null, reward: number | null, n = 8): StepPoint => ({
  step,
  series,
  n,
  n_prompts: 1,
  n_groups: 1,
  reward_mean: reward,
  reward_std: 0.5,
  reward_min: 0,
  reward_max: 1,
  pass_at_k: 1,
  response_chars_mean: 100,
  tokens_mean: null,
  truncated: 2,
  dead_groups: 1,
  lag_mean: null,
});

describe("curves", () => {
  test("one series has its spread around it", () => {
    const { xs, lines } = draw([point(2, null, 0.5), point(1, null, 0.25)], "reward_mean");
    expect(xs).toEqual([1, 2]);
    expect(lines).toEqual([{ label: "Reward", colour: "--series-1", values: [0.25, 0.5], low: [-0.25, 0], high: [0.75, 1] }]);
  });

  test("a step that a series does not have is a gap", () => {
    const { xs, lines } = draw([point(1, "a", 1), point(2, "b", 0, 99)], "truncated");
    expect(xs).toEqual([1, 2]);
    expect(lines.map((line) => [line.label, line.values])).toEqual([
      ["b", [null, 2 / 99]],
      ["a", [0.25, null]],
    ]);
  });

  test("the six largest of many series are drawn, and all are counted", () => {
    const points = Array.from({ length: 9 }, (_, i) => point(1, `s${i}`, 0, i + 1));
    const { lines, seriesTotal } = draw(points, "n");
    expect(seriesTotal).toBe(9);
    expect(lines.map((line) => line.label)).toEqual(["s8", "s7", "s6", "s5", "s4", "s3"]);
  });
});

test("a brush becomes a clause and comes back", () => {
  for (const [from, to] of [[3, 9], [4, 4], [-1, 0]] as const) expect(stepsOf(stepsClause(from, to))).toEqual([from, to]);
  expect(stepsOf("reward == 3")).toBeNull();
  expect(stepsOf("step >= 3 AND step <= 9 AND reward > 0")).toBeNull();
});
