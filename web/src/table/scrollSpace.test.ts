import { expect, test } from "vitest";
import { ROW_PX, ScrollSpace, SPACE_MAX_PX } from "./scrollSpace";

const MILLION = 1_000_000;

test("a short list is as high as its rows", () => {
  const space = new ScrollSpace(1000, 560);
  expect(space.height).toBe(1000 * ROW_PX);
  space.scrolled(2800);
  expect(space.rows(0)).toEqual([100, 120]);
  expect(space.shift).toBe(0);
});

test("a long list fits what browsers allow, and its last row can be reached", () => {
  const space = new ScrollSpace(MILLION, 560);
  expect(space.height).toBe(SPACE_MAX_PX);
  space.scrolled(SPACE_MAX_PX - 560);
  expect(space.rows(0)).toEqual([MILLION - 20, MILLION]);
  space.scrolled(0);
  expect(space.rows(0)).toEqual([0, 20]);
});

test("a small move goes pixel by pixel, a jump by the scale", () => {
  const space = new ScrollSpace(MILLION, 560);
  space.scrolled(6_000_000);
  const [middle] = space.rows(0);
  expect(middle).toBeGreaterThan(499_000);
  expect(middle).toBeLessThan(501_000);
  const { offset, shift } = space;
  space.scrolled(6_000_100);
  expect(space.offset).toBe(offset + 100);
  expect(space.shift).toBe(shift);
});

test("coming to rest moves the scrollbar and not the rows", () => {
  const space = new ScrollSpace(MILLION, 560);
  space.scrolled(6_000_000);
  for (let top = 6_000_000; top < 6_050_000; top += 500) space.scrolled(top);
  const before = space.rows(0);
  const top = space.settled();
  space.top = top;
  space.scrolled(top);
  expect(space.rows(0)).toEqual(before);
});

test("revealing moves as little as it can", () => {
  const space = new ScrollSpace(MILLION, 560);
  space.reveal(10);
  expect(space.offset).toBe(0);
  space.reveal(20);
  expect(space.offset).toBe(ROW_PX);
  const top = space.reveal(MILLION - 1);
  expect(space.rows(0)).toEqual([MILLION - 20, MILLION]);
  expect(top).toBe(SPACE_MAX_PX - 560);
  space.reveal(0);
  expect(space.offset).toBe(0);
});

test("fewer rows bring what was beyond them back into sight", () => {
  const space = new ScrollSpace(1000, 560);
  space.scrolled(20_000);
  space.resize(30, 560);
  expect(space.rows(0)).toEqual([10, 30]);
});
