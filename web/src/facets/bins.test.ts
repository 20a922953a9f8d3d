import { expect, test } from "vitest";
import { binsFor, isIn, rangeOf } from "./bins";

const bins = [0, 2.5, 5, 7.5].map((from) => ({ from, to: from + 2.5, count: 1 }));

test("brushed bins become a range without gaps and without doubles", () => {
  expect(rangeOf(bins, 0, 1, false)).toEqual({ from: 0, to: 5, open: true });
  expect(rangeOf(bins, 3, 2, false)).toEqual({ from: 5, to: 10, open: false });
  expect(rangeOf(bins, 0, 0, true)).toEqual({ from: 0, to: 2, open: false });
  expect(rangeOf(bins, 1, 1, true)).toEqual({ from: 3, to: 4, open: false });
  expect(rangeOf(bins, 2, 3, true)).toEqual({ from: 5, to: 10, open: false });
  expect(rangeOf([{ from: 0.1 + 0.2, to: 0.4, count: 1 }], 0, 0, false)).toEqual({ from: 0.3, to: 0.4, open: false });
});

test("bins know whether they are in a range", () => {
  const inside = (range: Parameters<typeof isIn>[1]) => bins.filter((bin, i) => isIn(bin, range, i === 3)).length;
  expect(inside(null)).toBe(4);
  expect(inside({ from: 0, to: 5, open: true })).toBe(2);
  expect(inside({ from: 10, to: null, open: false })).toBe(1);
});

test("each whole number has its own bin, or as many as the next", () => {
  expect(binsFor([1, 60], true)).toBe(60);
  expect(binsFor([0, 99], true)).toBe(34);
  expect(binsFor([5, 5], true)).toBe(2);
  expect(binsFor([0, 1], false)).toBe(40);
});
