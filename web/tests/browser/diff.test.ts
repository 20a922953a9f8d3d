import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, inject, test } from "vitest";
import { ask, first, groupOf, viewOf } from "./asked";
import { open, params } from "./page";

const LONG = "The same words over and over. ".repeat(60);

function place(answers: { text: string; reward: number }[]): string {
  mkdirSync(inject("folder"), { recursive: true });
  const file = join(mkdtempSync(join(inject("folder"), "diff-")), "rows.jsonl");
  const rows = answers.map(({ text, reward }, i) => ({
    messages: [
      { role: "user", content: "How many?" },
      { role: "assistant", content: text },
    ],
    attributes: { step: 1, reward, sample_index: i, stop_reason: reward === 1 ? "stop" : "length" },
  }));
  writeFileSync(file, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  return file;
}

async function three() {
  const file = place([
    { text: `${LONG}\nSo it is 12.\nDone.`, reward: 0 },
    { text: `${LONG}\nSo it is 13.\nDone.\nReally.`, reward: 1 },
    { text: `${LONG}\nSo it is 14.\nDone.`, reward: 0.25 },
  ]);
  const view = await viewOf(file);
  const [id = ""] = await first(view, "SELECT id FROM rollouts WHERE sample_index = 0");
  const group = await groupOf(view, String(id));
  return { url: `/?place=${encodeURIComponent(file)}&r=${id}`, ids: group.rollouts.map((rollout) => rollout.id) };
}

test("d holds a rollout against its best sibling, with the reward beside", async () => {
  const { url, ids } = await three();
  const page = await open(url);
  await page.getByRole("article", { name: "Rollout" }).waitFor();
  await page.keyboard.press("d");
  await page.getByText("Difference 1 of 2").waitFor();
  expect(await page.getByRole("combobox", { name: "Compare with" }).inputValue()).toBe(ids[1]);
  expect(await page.getByRole("cell", { name: "Difference of the rewards" }).textContent()).toBe("+1");
  await page.getByRole("cell", { name: "different", exact: true }).waitFor();
  expect(await page.locator("del").first().textContent()).toBe("12");
  expect(await page.locator("ins").first().textContent()).toBe("13");
  await page.getByText("First difference", { exact: true }).and(page.locator("p")).waitFor();
});

test("equal text is folded with its length, and opens", async () => {
  const { url } = await three();
  const page = await open(`${url}&tab=diff`);
  const fold = page.getByRole("button", { name: /equal characters/ });
  await fold.waitFor();
  const shown = await page.getByRole("region", { name: "Differences" }).textContent();
  await fold.click();
  await expect.poll(async () => (await page.getByRole("region", { name: "Differences" }).textContent())?.includes(LONG)).toBe(true);
  expect(shown).not.toContain(LONG);
});

test("keys go from difference to difference, turn to one column, and swap", async () => {
  const { url, ids } = await three();
  const page = await open(`${url}&tab=diff`);
  await page.getByText("Difference 1 of 2").waitFor();
  await page.keyboard.press(".");
  await page.locator('[data-change="1"][aria-current="true"]').waitFor();
  await page.keyboard.press(",");
  await page.locator('[data-change="0"][aria-current="true"]').waitFor();
  await page.keyboard.press("v");
  await expect.poll(() => params(page).get("inline")).toBe("1");
  // In one column both stand in the same row, one after the other.
  await expect.poll(() => page.locator('[data-change="0"]').textContent()).toContain("So it is 1213.");
  await page.keyboard.press("Shift+V");
  await expect.poll(() => page.locator("del").first().textContent()).toBe("13");
  expect([params(page).get("r"), params(page).get("other")]).toEqual([ids[1], ids[0]]);
});

test("another sibling can be chosen, and is in the link", async () => {
  const { url, ids } = await three();
  const page = await open(`${url}&tab=diff`);
  await page.getByRole("combobox", { name: "Compare with" }).selectOption(ids[2] ?? "");
  await expect.poll(() => page.locator("ins").first().textContent()).toBe("14");
  expect(params(page).get("other")).toBe(ids[2]);
  await page.reload();
  await page.getByText("Difference 1 of 1").waitFor();
});

test("two of the example part at the token that the server's lists part at", async () => {
  const view = await viewOf();
  const kept = `step = (SELECT max(step) FROM rollouts) AND body LIKE '%"response_tokens"%'`;
  const [id = ""] = await first(view, `SELECT min(id) FROM rollouts WHERE ${kept} GROUP BY group_id HAVING min(reward) < max(reward) LIMIT 1`);
  const page = await open(`/?place={example}&r=${id}&tab=diff`);
  const there = await page.getByRole("combobox", { name: "Compare with" }).inputValue();
  const tokens = (of: string) => ask<{ tokens: number[]; prompt_len: number }>(`/api/view/${view}/rollouts/${of}/tokens`);
  const [mine, theirs] = [await tokens(String(id)), await tokens(there)];
  const same = mine.tokens.findIndex((token, i) => token !== theirs.tokens[i]) - mine.prompt_len;
  await page.getByText(`Same prompt, same ${same} response token`).waitFor();
  await page.getByTitle("Show it among the tokens", { exact: true }).click();
  await page.locator(`[data-at="${same + mine.prompt_len}"][aria-selected="true"]`).waitFor();
});

test("a rollout alone has nothing to be compared with, and says so", async () => {
  const file = place([{ text: "alone", reward: 1 }]);
  const view = await viewOf(file);
  const [id = ""] = await first(view, "SELECT id FROM rollouts");
  const page = await open(`/?place=${encodeURIComponent(file)}&r=${id}&tab=diff`);
  await page.getByText("There is nothing to compare with").waitFor();
});

test("two long rollouts with nothing in common are compared while the page stays awake", async () => {
  const words = (seed: number) => Array.from({ length: 60_000 }, (_, i) => `w${(i * seed) % 9973}`).join(" ");
  const file = place([
    { text: words(7), reward: 0 },
    { text: words(11), reward: 1 },
  ]);
  const view = await viewOf(file);
  const [id = ""] = await first(view, "SELECT id FROM rollouts WHERE sample_index = 0");
  const page = await open(`/?place=${encodeURIComponent(file)}&r=${id}&tab=diff`);
  // Another tab opens while the worker is still at it.
  await page.getByRole("tab", { name: "Info" }).click();
  await page.getByRole("region", { name: "Raw bytes" }).waitFor();
  await page.getByRole("tab", { name: "Diff" }).click();
  await page.getByRole("button", { name: /more characters/ }).first().waitFor({ timeout: 20_000 });
});
