import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { expect, inject, test } from "vitest";
import { open } from "./page";

const FILTER = 'reward > 0.5 AND data_source contains "code"';

async function asked(page: Page, call: string, query: Record<string, string>): Promise<string> {
  const opened = await page.request.post(`${inject("url")}/api/view/open`, { data: { places: [inject("example")] } });
  const { view } = (await opened.json()) as { view: string };
  return (await page.request.get(`${inject("url")}/api/view/${view}/${call}`, { params: query })).text();
}

async function menu(page: Page) {
  await page.getByRole("grid", { name: "Rows" }).locator('[aria-rowindex="2"]').waitFor();
  await page.keyboard.press("e");
  return page.getByRole("dialog", { name: "Export rows" });
}

async function downloaded(page: Page): Promise<{ name: string; text: string }> {
  const link = page.getByRole("dialog", { name: "Export rows" }).getByRole("link", { name: /^Download/ });
  const [download] = await Promise.all([page.waitForEvent("download"), link.click()]);
  return { name: download.suggestedFilename(), text: readFileSync(await download.path(), "utf8") };
}

test("all rows of the filter are downloaded as they stand, and as the columns that are shown", async () => {
  const page = await open(`/?place={example}&f=${encodeURIComponent(FILTER)}&sort=-reward&cols=step,reward`);
  const dialog = await menu(page);
  const jsonl = await downloaded(page);
  const { total } = JSON.parse(await asked(page, "rows", { filter: FILTER })) as { total: number };
  expect(total).toBeGreaterThan(0);
  expect(jsonl.name).toBe("rollouts.jsonl");
  expect(jsonl.text.trimEnd().split("\n")).toHaveLength(total);
  expect(jsonl.text).toBe(await asked(page, "export", { filter: FILTER, sort: "-reward", format: "jsonl" }));
  await dialog.getByRole("radio", { name: /^CSV/ }).check();
  const csv = await downloaded(page);
  expect(csv.name).toBe("rollouts.csv");
  expect(csv.text.trimEnd().split("\n")).toHaveLength(total + 1);
  expect(csv.text.split("\n")[0]?.trim().split(",").sort()).toEqual(["reward", "step"]);
});

test("marked rows alone are downloaded", async () => {
  const page = await open("/?place={example}");
  await page.getByRole("checkbox", { name: "Mark row 1", exact: true }).click();
  await page.getByRole("checkbox", { name: "Mark row 3", exact: true }).click();
  await menu(page);
  const { text } = await downloaded(page);
  const { rows } = JSON.parse(await asked(page, "rows", { columns: "step" })) as { rows: { id: string }[] };
  const filter = `id in ("${rows[0]!.id}", "${rows[2]!.id}")`;
  expect(text).toBe(await asked(page, "export", { filter, format: "jsonl" }));
  expect(text.trimEnd().split("\n")).toHaveLength(2);
});

test("the command that gives the same can be copied", async () => {
  const page = await open(`/?place={example}&f=${encodeURIComponent(FILTER)}`);
  const dialog = await menu(page);
  await dialog.getByRole("button", { name: "Copy the command" }).click();
  await dialog.getByText("Copied").waitFor();
  const command = await page.evaluate(() => navigator.clipboard.readText());
  expect(command).toBe(`rollyard convert ${inject("example")} rollouts.jsonl --filter '${FILTER}' --unique`);
});
