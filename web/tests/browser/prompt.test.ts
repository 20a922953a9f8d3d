import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, inject, test } from "vitest";
import { ask, first, viewOf, type Grouped } from "./asked";
import { open, params } from "./page";

/** One prompt at steps 1 to 6, two rollouts each: solved at 2, lost at 4, back at 5. */
function write(): string {
  mkdirSync(inject("folder"), { recursive: true });
  const file = join(mkdtempSync(join(inject("folder"), "prompt-")), "rows.jsonl");
  const rows = [0, 1, 1, 0, 1, 1].flatMap((reward, i) =>
    [reward, 0].map((value, k) => ({
      messages: [
        { role: "user", content: "What is 6 times 7?" },
        { role: "assistant", content: `Step ${i + 1}, try ${k}: ${value === 1 ? 42 : 41}` },
      ],
      attributes: { step: i + 1, reward: value, sample_index: k },
    })),
  );
  writeFileSync(file, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  return file;
}

test("first success, loss and return are told, and lead to their steps", async () => {
  const file = write();
  const view = await viewOf(file);
  const [id = ""] = await first(view, "SELECT id FROM rollouts WHERE step = 1");
  const page = await open(`/?place=${encodeURIComponent(file)}&r=${id}&tab=group`);
  const region = page.getByRole("region", { name: "Same prompt over steps" });
  await region.getByText("First solved at step 2; lost at 4, back at 5; solved now.").waitFor();
  await region.getByText("12 rollouts at 6 steps").waitFor();
  const [solved = ""] = await first(view, "SELECT id FROM rollouts WHERE step = 5 AND reward = 1");
  await region.getByTitle("Open the best rollout of step 5").click();
  expect(params(page).get("r")).toBe(solved);
  expect(params(page).get("tab")).toBe("group");
});

test("the example's prompt is shown at each of its steps, and a dot opens its rollout", async () => {
  const view = await viewOf();
  const [id = ""] = await first(view, "SELECT min(id) FROM rollouts GROUP BY prompt_hash HAVING count(DISTINCT step) > 2 LIMIT 1");
  const prompt = await ask<Grouped>(`/api/view/${view}/rollouts/${id}/prompt`);
  const steps = new Set(prompt.rollouts.map(({ values }) => values[prompt.columns.indexOf("step")]));
  const page = await open(`/?place={example}&r=${id}&tab=group`);
  const list = page.getByRole("list", { name: "Steps of this prompt" });
  await list.waitFor();
  expect(await list.getByRole("listitem").count()).toBe(steps.size);
  const dots = page.getByRole("img", { name: /^Rewards from step/ }).locator("circle");
  expect(await dots.count()).toBe(prompt.rollouts.length);
  await list.getByRole("button").last().click();
  const last = Math.max(...[...steps].map(Number));
  const opened = prompt.rollouts.find((rollout) => rollout.id === params(page).get("r"));
  expect(opened?.values[prompt.columns.indexOf("step")]).toBe(last);
  await dots.first().click();
  expect(prompt.rollouts.map((rollout) => rollout.id)).toContain(params(page).get("r"));
  await page.locator('circle[data-current="true"]').waitFor();
});
