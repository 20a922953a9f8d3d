import { beforeEach, expect, test } from "vitest";
import { kept } from "@/state/kept";
import { above, LATELY, remember, shortName } from "./places";

beforeEach(() => localStorage.clear());

test("short names still say which one", () => {
  const cases = [
    ["/data/run1/a.jsonl", "run1/a.jsonl"],
    ["/data", "data"],
    ["/data/run1/", "data/run1"],
    ["s3://bucket", "bucket"],
    ["s3://bucket/run/*.jsonl", "run/*.jsonl"],
    ["yard://default", "run default"],
    ["/data/run1/rollouts-of-a-very-long-run.jsonl", "rollouts-of-a-very-long-run.jsonl"],
  ];
  for (const [place = "", name] of cases) expect(shortName(place)).toBe(name);
});

test("nothing above a root is offered", () => {
  const roots = ["/data", "s3://bucket/runs"];
  expect(above("/data/a/b", roots)).toBe("/data/a");
  expect(above("/data/a", roots)).toBe("/data");
  expect(above("/data", roots)).toBeNull();
  expect(above("/database/a", roots)).toBeNull();
  expect(above("s3://bucket/runs/x/", roots)).toBe("s3://bucket/runs");
});

test("places are remembered once, the latest first", () => {
  for (let i = 0; i < 12; i += 1) remember([`/p${i}`]);
  remember(["/p9"]);
  const lately = kept<string[][]>(LATELY, []);
  expect(lately).toHaveLength(8);
  expect(lately.slice(0, 2)).toEqual([["/p9"], ["/p11"]]);
});
