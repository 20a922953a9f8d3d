import { expect, test } from "vitest";
import { commandFor, exportUrl, filterOfIds, shellQuoted } from "./command";

test("what a shell would read is quoted", () => {
  expect(shellQuoted("/data/run-1.jsonl")).toBe("/data/run-1.jsonl");
  expect(shellQuoted("reward > 0.5")).toBe("'reward > 0.5'");
  expect(shellQuoted("it's $HOME")).toBe(`'it'\\''s $HOME'`);
});

test("the command gives the same rows", () => {
  const asked = { places: ["/data/a b", "s3://x/y"], filter: 'reward > 0.5 AND data_source == "m"', columns: ["step", "reward.format"] };
  expect(commandFor({ ...asked, format: "jsonl" })).toBe(
    `rollyard convert '/data/a b' s3://x/y rollouts.jsonl --filter 'reward > 0.5 AND data_source == "m"' --unique`,
  );
  expect(commandFor({ ...asked, filter: "", format: "parquet" })).toBe("rollyard convert '/data/a b' s3://x/y rollouts.parquet --unique");
  expect(commandFor({ ...asked, filter: "", columns: ["step", "reward"], format: "csv" })).toBe(
    "rollyard query 'select step, reward from rollouts' '/data/a b' s3://x/y --out rollouts.csv",
  );
  expect(commandFor({ ...asked, format: "csv" })).toContain("rollouts.jsonl --filter");
  expect(commandFor({ ...asked, format: "html" })).toBeNull();
  expect(commandFor({ ...asked, places: ["yard://default"], format: "jsonl" })).toBeNull();
});

test("the link has the filter, and the columns where they count", () => {
  const url = exportUrl("abc", { filter: 'a == "b & c"', sort: "-reward", columns: ["step", "reward"], format: "csv" });
  const params = new URL(url, "http://x").searchParams;
  expect(Object.fromEntries(params)).toEqual({ format: "csv", filter: 'a == "b & c"', sort: "-reward", columns: "step,reward" });
  expect(exportUrl("abc", { filter: "", sort: "", columns: ["step"], format: "jsonl" })).toBe("/api/view/abc/export?format=jsonl");
  expect(filterOfIds(["a", "b"])).toBe('id in ("a", "b")');
});
