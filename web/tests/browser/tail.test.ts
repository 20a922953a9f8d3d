import { appendFileSync, mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { expect, inject, test } from "vitest";
import { post } from "./api";
import { expectTrouble, open, params } from "./page";

const line = (n: number) =>
  `${JSON.stringify({
    messages: [{ role: "user", content: `question ${n}` }, { role: "assistant", content: `answer ${n}` }],
    attributes: { step: n, reward: (n % 10) / 10, data_source: "tail", rollout_n: n },
  })}\n`;

function growing(rows: number): { file: string; append: (n: number) => void } {
  const file = join(mkdtempSync(join(inject("folder"), "tail-")), "run.jsonl");
  writeFileSync(file, Array.from({ length: rows }, (_, n) => line(n)).join(""));
  return { file, append: (n) => appendFileSync(file, line(n)) };
}

const grid = (page: Page) => page.getByRole("grid", { name: "Rows" });
const firstStep = (page: Page) => grid(page).locator('[aria-rowindex="2"] [aria-colindex="2"]').innerText();
const shown = (page: Page, words: string) => page.getByRole("status").filter({ hasText: words }).first();

test("a line that is written is the first row within two seconds, and is counted", async () => {
  const { file, append } = growing(60);
  const page = await open(`/?place=${encodeURIComponent(file)}&cols=step,reward,rollout_n`);
  await shown(page, "60 rows").waitFor();
  await page.keyboard.press("Shift+F");
  await page.getByText("Live", { exact: true }).last().waitFor();
  expect(params(page).get("follow")).toBe("1");
  await expect.poll(() => firstStep(page)).toBe("59");
  append(1000);
  await expect.poll(() => firstStep(page), { timeout: 2_000 }).toBe("1,000");
  await shown(page, "61 rows").waitFor();
  // One line was read just now; that is not the size of what is looked at.
  const sources = page.getByRole("region", { name: "Sources" });
  await sources.getByText("61 rows", { exact: true }).waitFor();
  expect(await sources.getByRole("progressbar").count()).toBe(0);
});

test("while somebody reads further down, new rows are counted and nothing moves", async () => {
  const { file, append } = growing(300);
  const page = await open(`/?place=${encodeURIComponent(file)}&cols=step,reward&follow=1`);
  await expect.poll(() => firstStep(page)).toBe("299");
  await page.getByText("new rows are shown as they come").waitFor({ state: "attached" });
  await grid(page).evaluate((element) => element.scrollTo(0, 2_800));
  await grid(page).locator('[aria-rowindex="112"]').waitFor();
  await page.getByText("paused while you read further down").waitFor({ state: "attached" });
  const before = await grid(page).locator('[aria-rowindex="112"]').innerText();
  append(1000);
  append(1001);
  const more = page.getByRole("button", { name: "Show 2 new rows" });
  await more.waitFor();
  expect(await grid(page).locator('[aria-rowindex="112"]').innerText()).toBe(before);
  await more.click();
  await expect.poll(() => firstStep(page)).toBe("1,001");
  await shown(page, "302 rows").waitFor();
});

test("rows stay on screen while more of them come than there are on a page", async () => {
  const { file, append } = growing(300);
  const page = await open(`/?place=${encodeURIComponent(file)}&cols=step,reward&follow=1`);
  await expect.poll(() => firstStep(page)).toBe("299");
  await page.getByText("new rows are shown as they come").waitFor({ state: "attached" });
  // Every frame until the newest is on top: whether a row was ever without its values.
  const blanks = page.evaluate(async () => {
    const top = () => document.querySelector('[role="grid"] [aria-rowindex="2"] [aria-colindex="2"]')?.textContent ?? "";
    let blank = 0;
    while (top() !== "1,399") {
      await new Promise(requestAnimationFrame);
      if (top() === "") blank++;
    }
    return blank;
  });
  for (let n = 1000; n < 1400; n++) append(n);
  expect(await blanks).toBe(0);
  await shown(page, "700 rows").waitFor();
});

test("a pause holds new rows back until it ends", async () => {
  const { file, append } = growing(10);
  const page = await open(`/?place=${encodeURIComponent(file)}&cols=step&follow=1`);
  await page.getByText("new rows are shown as they come").waitFor({ state: "attached" });
  await page.keyboard.press("Shift+H");
  append(1000);
  await page.getByRole("button", { name: "Show 1 new row" }).waitFor();
  expect(await firstStep(page)).toBe("9");
  await page.keyboard.press("Shift+H");
  await expect.poll(() => firstStep(page)).toBe("1,000");
});

test("a running yard is followed as a file is", async () => {
  const run = `tail-${Date.now()}`;
  const write = (n: number) =>
    post(`/runs/${run}/buffer/write`, { instance_id: `prompt-${n}`, uid: `${run}-${n}`, reward: 0.5, messages: [{ role: "user", content: `question ${n}` }] });
  await post("/api/runs", { name: run });
  // Nothing is archived before the first is written, and the browser notes each time that it asked in vain.
  expectTrouble(/404/);
  const page = await open(`/?place=${encodeURIComponent(`yard://${run}`)}&cols=instance_id,status&follow=1`);
  await page.getByText("Nothing of this run is archived yet").waitFor();
  for (let n = 0; n < 3; n++) await write(n);
  await shown(page, "3 rows").waitFor();
  await page.getByText("new rows are shown as they come").waitFor({ state: "attached" });
  await write(3);
  await grid(page).getByText("prompt-3").waitFor({ timeout: 2_000 });
  await shown(page, "4 rows").waitFor();
});
