import { expect, test } from "vitest";
import { ask, first, viewOf } from "./asked";
import { open, params } from "./page";

interface Rollout {
  extra: Record<string, unknown>;
  attributes: Record<string, unknown>;
  source: { file: string; line: number };
}

test("the reward is broken down, beside the right answer", async () => {
  const view = await viewOf();
  const [id = ""] = await first(view, "SELECT id FROM rollouts WHERE extra LIKE '%\"reward.%' AND extra LIKE '%ground_truth%' ORDER BY id LIMIT 1");
  const rollout = await ask<Rollout>(`/api/view/${view}/rollouts/${id}`);
  const page = await open(`/?place={example}&r=${id}&tab=info`);
  const reward = page.getByRole("region", { name: "Reward", exact: true });
  await reward.waitFor();
  for (const [name, value] of Object.entries(rollout.extra).filter(([key]) => key.startsWith("reward."))) {
    const row = reward.getByRole("row", { name: new RegExp(`^${name.replace(".", "\\.")}`) });
    expect(Number((await row.getByRole("cell").first().textContent()) ?? "")).toBeCloseTo(Number(value), 2);
  }
  await reward.getByText(String(rollout.attributes["ground_truth"]), { exact: true }).waitFor();
});

test("a dropped rollout says why, and leads to all that were", async () => {
  const view = await viewOf();
  const [id = "", reason = ""] = await first(view, "SELECT id, reason FROM rollouts WHERE status = 'dropped' AND reason IS NOT NULL ORDER BY id LIMIT 1");
  const page = await open(`/?place={example}&r=${id}&tab=info`);
  const fate = page.getByRole("region", { name: "What became of it" });
  await fate.getByText(`Dropped: the trainer never saw it. Reason: ${reason}`).waitFor();
  await fate.getByRole("button", { name: `Filter to reason == "${reason}"` }).click();
  expect(params(page).getAll("f")).toEqual([`reason == "${reason}"`]);
  await fate.getByRole("button", { name: `Take away the filter reason == "${reason}"` }).click();
  expect(params(page).getAll("f")).toEqual([]);
});

test("every filter that is offered is one that the server takes and that finds this rollout", async () => {
  const view = await viewOf();
  const [id = ""] = await first(view, "SELECT id FROM rollouts ORDER BY id LIMIT 1");
  const page = await open(`/?place={example}&r=${id}&tab=info`);
  await page.getByRole("region", { name: "Columns" }).waitFor();
  const labels = await page.getByRole("button", { name: /^Filter to / }).evaluateAll((buttons) => buttons.map((button) => button.getAttribute("aria-label") ?? ""));
  const clauses = labels.map((label) => label.replace("Filter to ", ""));
  expect(clauses.length).toBeGreaterThan(20);
  const missed = [];
  for (const clause of clauses) {
    const asked = `(${clause}) AND id == "${id}"`;
    const answer = await ask<{ total: number }>(`/api/view/${view}/rows?limit=1&filter=${encodeURIComponent(asked)}`).catch((error: unknown) => ({ total: String(error) }));
    if (answer.total !== 1) missed.push([clause, answer.total]);
  }
  expect(missed).toEqual([]);
});

test("file and line, nested fields and the bytes of the row are there", async () => {
  const view = await viewOf();
  const [id = ""] = await first(view, "SELECT id FROM rollouts ORDER BY id LIMIT 1");
  const { source } = await ask<Rollout>(`/api/view/${view}/rollouts/${id}`);
  const page = await open(`/?place={example}&r=${id}&tab=info`);
  await page.getByText(`${source.file}:${source.line}`, { exact: true }).waitFor();
  const row = page.getByRole("region", { name: "The row as it is" });
  await row.locator("summary", { hasText: "attributes" }).click();
  await row.getByText("experiment_name").waitFor();
  await page.getByRole("button", { name: "Show the raw bytes" }).click();
  const raw = JSON.parse((await page.getByLabel("Raw bytes as text").textContent()) ?? "") as { messages: unknown[] };
  expect(raw.messages.length).toBeGreaterThan(0);
});
