/** What the guide says is so. */

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, inject, test } from "vitest";
import { get, openView } from "./api";
import { open } from "./page";

const GUIDE = readFileSync(resolve(import.meta.dirname, "../../../docs/guide/viewer.md"), "utf8");

test("every filter of the guide is one", async () => {
  const view = await openView(inject("example"));
  const filters = GUIDE.split("## The filter")[1]!.split("```")[1]!.trim().split("\n");
  expect(filters.length).toBeGreaterThan(3);
  for (const filter of filters) {
    expect(await get(`/api/view/${view}/check?filter=${encodeURIComponent(filter)}`)).toEqual({ ok: true });
  }
});

test("every key of the guide is one", async () => {
  const rows = GUIDE.split("| key | |")[1]!.split("\n\n")[0]!;
  const keys = [...rows.matchAll(/^\|([^|]+)\|/gm)].flatMap(([, cell]) => [...cell!.matchAll(/`([^`]+)`/g)].map(([, key]) => key!));
  expect(keys).toContain("j");
  const page = await open("/?place={example}");
  await page.getByRole("row").nth(2).waitFor();
  await page.keyboard.press("j");
  await page.getByRole("tab", { name: "Chat", selected: true }).waitFor();
  await page.getByRole("button", { name: /find/i }).first().waitFor();
  await page.keyboard.press("?");
  const listed = await page.getByRole("dialog", { name: "Keys" }).locator("kbd").allInnerTexts();
  expect(keys.filter((key) => !listed.includes(key))).toEqual([]);
});
