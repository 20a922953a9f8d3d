import { expect, test } from "vitest";
import type { Place } from "./place";
import { neighbour } from "./useHitWalk";

const PLACES: Place[] = [
  { message: 1, range: [5, 9] },
  { message: 1, range: [20, 24] },
  { message: 3, range: [0, 4] },
];

test("the next hit is the one after where the reader is, within the rollout first", () => {
  const cases: [number | null, [number, number] | null, 1 | -1, number | undefined][] = [
    [null, null, 1, 0],
    [null, null, -1, undefined],
    [1, [5, 9], 1, 1],
    [1, [20, 24], 1, 2],
    [3, [0, 4], 1, undefined],
    [3, [0, 4], -1, 1],
    [1, [5, 9], -1, undefined],
    // Between two, or at a message without a range.
    [1, [12, 13], 1, 1],
    [1, [12, 13], -1, 0],
    [2, null, 1, 2],
    [1, null, 1, 0],
  ];
  for (const [message, range, by, wanted] of cases) {
    const found = neighbour(PLACES, { message, range }, by);
    expect(found, JSON.stringify([message, range, by])).toBe(wanted === undefined ? undefined : PLACES[wanted]);
  }
});
