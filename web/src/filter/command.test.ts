import { expect, test } from "vitest";
import { commandFor } from "./command";

test("a shell reads the command as it was meant", () => {
  expect(commandFor(["/a/b.jsonl"], "")).toBe("rollyard convert /a/b.jsonl rows.jsonl");
  expect(commandFor(["/a b/*.jsonl"], `uid == 'x' and reward > 1`)).toBe(
    `rollyard convert '/a b/*.jsonl' rows.jsonl --filter 'uid == '\\''x'\\'' and reward > 1'`,
  );
  expect(commandFor(["yard://default"], "")).toBeNull();
});
