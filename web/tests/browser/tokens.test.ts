import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, inject, test } from "vitest";
import { ask, first, viewOf } from "./asked";
import { expectTrouble, open, params } from "./page";

interface Tokens {
  tokens: number[];
  prompt_len: number;
  logprobs: number[];
  mask: boolean[];
  texts?: string[] | null;
}

/** Sampled tokens from the least likely on. */
const worst = ({ prompt_len, logprobs, mask }: Tokens) =>
  logprobs
    .map((value, i) => ({ value, at: i + prompt_len }))
    .filter((_, i) => mask[i])
    .sort((a, b) => a.value - b.value || a.at - b.at)
    .map(({ at }) => at);

async function some() {
  const view = await viewOf();
  const [id = ""] = await first(view, `SELECT id FROM rollouts WHERE step = (SELECT max(step) FROM rollouts) AND body LIKE '%"response_tokens"%' ORDER BY sample_index, id`);
  return { id: String(id), tokens: await ask<Tokens>(`/api/view/${view}/rollouts/${id}/tokens`) };
}

function place(rows: unknown[]): string {
  mkdirSync(inject("folder"), { recursive: true });
  const file = join(mkdtempSync(join(inject("folder"), "tokens-")), "rows.jsonl");
  writeFileSync(file, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  return file;
}

const message = (role: string, content: string) => ({ role, content });

test("w steps through the least likely tokens, and the link leads back to the same one", async () => {
  const { id, tokens } = await some();
  const [one = 0, two = 0] = worst(tokens);
  const page = await open(`/?place={example}&r=${id}&tab=tokens`);
  await page.getByRole("listbox", { name: "Tokens in order" }).waitFor();
  await page.keyboard.press("w");
  await page.locator(`[data-at="${one}"][aria-selected="true"]`).waitFor();
  await page.keyboard.press("w");
  await page.locator(`[data-at="${two}"][aria-selected="true"]`).waitFor();
  await page.keyboard.press("Shift+W");
  await page.locator(`[data-at="${one}"][aria-selected="true"]`).waitFor();
  expect(params(page).get("t")).toBe(`${id.slice(0, 8)}.${one}`);
  const details = page.getByLabel("This token");
  await details.getByText(String(tokens.tokens[one]), { exact: true }).waitFor();
  await details.getByText((tokens.logprobs[one - tokens.prompt_len] ?? 0).toFixed(3)).waitFor();
  await page.reload();
  await page.locator(`[data-at="${one}"][aria-selected="true"]`).waitFor();
});

test("colours follow the measure that is chosen, with a legend", async () => {
  const { id } = await some();
  const page = await open(`/?place={example}&r=${id}&tab=tokens`);
  const legend = page.getByRole("list", { name: "Legend" });
  await legend.getByText("Probability").waitFor();
  const strongest = page.locator('[role="option"][class*="heat4"]').first();
  await page.keyboard.press("w");
  await page.getByRole("button", { name: "Colour by version" }).click();
  await legend.getByText("Version of the weights").waitFor();
  expect(params(page).get("heat")).toBe("version");
  expect(await strongest.count()).toBe(0);
  expect(await page.locator('[role="option"][class*="version0"]').count()).toBeGreaterThan(0);
});

test("the strip, the list and the arrows lead to tokens", async () => {
  const { id, tokens } = await some();
  const page = await open(`/?place={example}&r=${id}&tab=tokens`);
  await page.getByRole("slider", { name: "Lowest log-prob along the tokens" }).click({ position: { x: 2, y: 10 } });
  await page.locator('[data-at][aria-selected="true"]').waitFor();
  expect(Number(params(page).get("t")?.split(".")[1])).toBeLessThan(tokens.prompt_len);
  await page.keyboard.press("l");
  const [, second = 0] = worst(tokens);
  await page.getByRole("list", { name: "Least likely tokens" }).getByRole("button").nth(1).click();
  await page.locator(`[data-at="${second}"][aria-selected="true"]`).waitFor();
  await page.getByRole("listbox", { name: "Tokens in order" }).press("ArrowRight");
  await page.locator(`[data-at="${second + 1}"][aria-selected="true"]`).waitFor();
});

test("what was not trained on is dimmed, and counted", async () => {
  const row = {
    messages: [message("user", "q"), message("assistant", "a")],
    tokens: [1, 2, 3, 4, 5],
    response_length: 3,
    logprobs: [-1, -20, -2],
    loss_mask: [1, 0, 1],
  };
  const file = place([row]);
  const view = await viewOf(file);
  const [id = ""] = await first(view, "SELECT id FROM rollouts");
  const page = await open(`/?place=${encodeURIComponent(file)}&r=${id}&tab=tokens`);
  await page.getByText("2 prompt + 3 response tokens, 2 trained").waitFor();
  expect(await page.locator('[data-at="3"]').getAttribute("class")).toContain("untrained");
  expect(await page.locator('[data-at="2"]').getAttribute("class")).not.toContain("untrained");
  // The masked one is less likely by far, and still not the worst.
  await page.keyboard.press("w");
  await page.locator('[data-at="4"][aria-selected="true"]').waitFor();
});

test("100,000 tokens are there, and only those in sight are drawn", async () => {
  const n = 100_000;
  const logprobs = Array.from({ length: n }, (_, i) => (i === 77_777 ? -12 : -0.01));
  const row = { messages: [message("user", "q"), message("assistant", "a")], tokens: Array.from({ length: n + 1 }, (_, i) => i), response_length: n, logprobs };
  const file = place([row]);
  const view = await viewOf(file);
  const [id = ""] = await first(view, "SELECT id FROM rollouts");
  const page = await open(`/?place=${encodeURIComponent(file)}&r=${id}&tab=tokens`);
  await page.getByText("1 prompt + 100,000 response tokens, all trained").waitFor();
  await page.keyboard.press("w");
  await page.locator('[data-at="77778"][aria-selected="true"]').waitFor();
  expect(await page.locator("[data-at]").count()).toBeLessThan(2_000);
});

test("a row without tokens says what would keep them", async () => {
  expectTrouble(/404/);
  const file = place([{ messages: [message("user", "q"), message("assistant", "a")] }]);
  const view = await viewOf(file);
  const [id = ""] = await first(view, "SELECT id FROM rollouts");
  const page = await open(`/?place=${encodeURIComponent(file)}&r=${id}&tab=tokens`);
  await page.getByText("This rollout has no tokens").waitFor();
  await page.getByText("archive_tokens").waitFor();
});

test("b puts the chat beside the tokens, from any tab", async () => {
  const { id } = await some();
  const page = await open(`/?place={example}&r=${id}`);
  await page.getByRole("tab", { name: "Chat", selected: true }).waitFor();
  await page.keyboard.press("b");
  await page.getByRole("listbox", { name: "Tokens in order" }).waitFor();
  expect(params(page).get("beside")).toBe("1");
  await page.keyboard.press("b");
  await expect.poll(() => params(page).get("beside")).toBe(null);
});

test("texts, entropies and advantages are shown where the row has them, with what cannot be seen", async () => {
  const row = {
    messages: [message("user", "q"), message("assistant", "a")],
    tokens: [1, 2, 3, 4],
    response_length: 3,
    logprobs: [-0.1, -2, -1],
    entropies: [0.05, 2.5, 0.7],
    advantages: [-1, 0, 1],
    token_texts: ["Hi", "<b>bold</b>", "\u202e", "\n"],
  };
  const file = place([row]);
  const view = await viewOf(file);
  const [id = ""] = await first(view, "SELECT id FROM rollouts");
  const page = await open(`/?place=${encodeURIComponent(file)}&r=${id}&tab=tokens&heat=entropy`);
  await page.locator('[data-at="1"]').waitFor();
  expect(await page.locator("[data-at]").allTextContents()).toEqual(["Hi", "<b>bold</b>", "⟨U+202E⟩", "⏎"]);
  expect(await page.locator('[data-at="2"]').getAttribute("class")).toContain("heat4");
  await page.locator('[data-at="2"]').hover();
  await page.getByLabel("This token").getByText("2.500").waitFor();
  await page.getByRole("button", { name: "Colour by advantage" }).click();
  await page.locator('[data-at="3"][class*="reward4"]').waitFor();
  expect(await page.locator('[data-at="1"]').getAttribute("class")).toContain("reward0");
});
