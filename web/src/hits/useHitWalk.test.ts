import { expect, test } from "vitest";
import type { Place } from "./place";
import { neighbour } from "./useHitWalk";

const PLACES: Place[] = [
  { message: 1, channel: "reasoning", range: [20, 24] },
  { message: 1, channel: "assistant", range: [5, 9] },
  { message: 3, channel: "assistant", range: [0, 4] },
];

test("the next hit is the one after where the reader is, within the rollout first", () => {
  const cases: [string, number | null, string | null, [number, number] | null, 1 | -1, number | undefined][] = [
    ["nowhere yet", null, null, null, 1, 0],
    ["nowhere yet, backwards", null, null, null, -1, undefined],
    // What is said first counts, not the number: each channel counts for itself.
    ["from reasoning to the answer", 1, "reasoning", [20, 24], 1, 1],
    ["to the next message", 1, "assistant", [5, 9], 1, 2],
    ["after the last", 3, "assistant", [0, 4], 1, undefined],
    ["back to the message before", 3, "assistant", [0, 4], -1, 1],
    ["back within a message", 1, "assistant", [5, 9], -1, 0],
    ["before the first", 1, "reasoning", [20, 24], -1, undefined],
    ["from other text", 2, null, [1, 2], 1, 2],
    ["from other text, backwards", 2, null, [1, 2], -1, 1],
  ];
  for (const [name, message, channel, range, by, wanted] of cases) {
    const found = neighbour(PLACES, { message, channel, range }, by);
    expect(found, name).toBe(wanted === undefined ? undefined : PLACES[wanted]);
  }
});
