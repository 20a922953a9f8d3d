import { expect, test } from "vitest";
import { storyOf, turnsOf } from "./story";

/** Passes of each step; null for one without rewards. Steps count by tens. */
const steps = (...passes: (number | null)[]) => passes.map((n, i) => ({ step: (i + 1) * 10, passes: n ?? 0, graded: n === null ? 0 : 8 }));

const said = (...passes: (number | null)[]) =>
  storyOf(steps(...passes))
    .map((part) => (typeof part === "string" ? part : `[${part.step}]`))
    .join("");

test.each([
  [[], "None of its rollouts has a reward."],
  [[null, null], "None of its rollouts has a reward."],
  [[0], "Not solved at step [10]."],
  [[0, 0, 0], "Not solved at any of its 3 steps, the last is step [30]."],
  [[3], "Solved at step [10]."],
  [[3, 1, 8], "Solved at the first step, [10], and at every one since."],
  [[0, 1, 8], "First solved at step [20], and at every one since."],
  [[0, 1, 0, 2], "First solved at step [20]; lost at [30], back at [40]; solved now."],
  [[1, 0, 0], "First solved at step [10]; lost at [20]; not solved since."],
  // What was not graded is neither a success nor a loss.
  [[0, 1, null, 2], "First solved at step [20], and at every one since."],
])("%j reads", (passes, expected) => {
  expect(said(...passes)).toBe(expected);
});

test("a prompt that keeps changing is not told to the end", () => {
  expect(said(1, 0, 1, 0, 1, 0, 1, 0, 1)).toBe(
    "First solved at step [10]; lost at [20], back at [30]; lost at [40], back at [50]; lost at [60], back at [70]; and 2 more changes; solved now.",
  );
});

test("a turn is where solving began, was lost, or came back", () => {
  expect(turnsOf(steps(0, 1, 1, 0, 4)).map(({ what, step }) => `${what} ${step}`)).toEqual(["first 20", "lost 40", "back 50"]);
});
