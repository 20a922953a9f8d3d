import { expect, test } from "vitest";
import { formatSort, parseSort, turned } from "./sorts";

test("sorts come back as they went", () => {
  for (const text of ["", "step", "-reward,step", "-reward.format"]) expect(formatSort(parseSort(text))).toBe(text);
  expect(formatSort(parseSort(" +step , -reward"))).toBe("step,-reward");
});

test("clicks turn a sort, Shift adds one", () => {
  const click = (sort: string, id: string, isMore = false) => formatSort(turned(parseSort(sort), id, { descFirst: false, isMore }));
  expect(click("", "step")).toBe("step");
  expect(click("step", "step")).toBe("-step");
  expect(click("-step", "reward")).toBe("reward");
  expect(click("-step", "reward", true)).toBe("-step,reward");
  expect(click("-step,reward", "step", true)).toBe("step,reward");
  expect(formatSort(turned([], "reward", { descFirst: true, isMore: false }))).toBe("-reward");
});
