import { mkdtempSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, inject, test } from "vitest";
import { get, openView, type Schema } from "./api";
import { open } from "./page";

/** Into the documents with UPDATE_IMAGES=1; else the tests only see that there is something to show. */
const ASIDE = mkdtempSync(join(process.env["IMAGES"] ?? inject("folder"), "images-"));
const FOLDER = process.env["UPDATE_IMAGES"] === "1" ? resolve(import.meta.dirname, "../../../docs/images") : ASIDE;

async function first(filter: string, sort = ""): Promise<string> {
  const view = await openView(inject("example"));
  const rows = await get<Schema["RowsAnswer"]>(`/api/view/${view}/rows?filter=${encodeURIComponent(filter)}&sort=${sort}&limit=1`);
  return rows.rows[0]?.id ?? "";
}

/** The first rollout whose reasoning has this word. */
async function firstHit(word: string): Promise<string> {
  const view = await openView(inject("example"));
  const response = await fetch(`${inject("url")}/api/view/${view}/search?text=${word}&channel=reasoning&limit=1`);
  return /"id":"([0-9a-f]{32})"/.exec(await response.text())?.[1] ?? "";
}

const SOME = "tool_calls > 1 AND tokens > 0 AND reward > 0.5";

const SCREENS: Record<string, () => Promise<string>> = {
  chat: async () => `/?place={example}&sort=-step&series=data_source&r=${await first(`${SOME} AND data_source contains "code" AND dead_group == false`, "-step")}`,
  tokens: async () => `/?place={example}&q=mixed+%3D%3D+true&sort=-lag&r=${await first("tokens > 100 AND mixed == true AND reward < 0.5", "-step")}&tab=tokens`,
  group: async () => `/?place={example}&list=groups&r=${await first("reward > 0.5 AND data_source contains \"math\" AND dead_group == false", "-step")}&tab=group`,
  diff: async () => `/?place={example}&r=${await first("data_source contains \"math\" AND reward < 0.5 AND dead_group == false", "-step")}&tab=diff`,
  figures: async () => `/?place={example}&list=figures&series=data_source&r=${await first(SOME)}&tab=info`,
  search: async () => `/?place={example}&list=hits&s=${encodeURIComponent("all::reasoning:wait")}&r=${await firstHit("wait")}`,
};

for (const theme of ["light", "dark"] as const) {
  test.each(Object.keys(SCREENS))(`a picture of %s, ${theme}`, async (name) => {
    const path = (await SCREENS[name]?.()) ?? "/";
    for (const [width, height] of [[1440, 900], [1024, 768]] as const) {
      const page = await open(path, { theme, width, height });
      await page.getByRole("article", { name: "Rollout" }).waitFor();
      await page.waitForLoadState("networkidle");
      const file = width === 1440 ? join(FOLDER, `${name}-${theme}.png`) : join(ASIDE, `${name}-${theme}-small.png`);
      await page.screenshot({ path: file });
      expect(statSync(file).size).toBeGreaterThan(20_000);
    }
  });
}
