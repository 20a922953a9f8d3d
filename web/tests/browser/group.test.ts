import { expect, test } from "vitest";
import { column, first, groupOf, viewOf } from "./asked";
import { open, params } from "./page";

const WITH = (having: string) => `SELECT min(id) FROM rollouts GROUP BY group_id HAVING count(*) > 2 AND ${having} LIMIT 1`;

async function varied() {
  const view = await viewOf();
  const [id = ""] = await first(view, WITH("min(reward) < max(reward)"));
  return { id: String(id), group: await groupOf(view, String(id)) };
}

test("a group shows all its rollouts, with mean, rewards and how they end", async () => {
  const { id, group } = await varied();
  const page = await open(`/?place={example}&r=${id}&tab=group`);
  const region = page.getByRole("region", { name: "Group", exact: true });
  await region.getByRole("table").waitFor();
  expect(await region.getByRole("checkbox").count()).toBe(group.total);
  expect(await region.locator("dd").nth(0).textContent()).toBe(String(group.total));
  expect(Number(await region.locator("dd").nth(1).textContent())).toBeCloseTo(group.reward_mean, 2);
  const stops = new Set(column(group, "stop_reason"));
  for (const stop of stops) if (stop !== null) await region.getByRole("cell", { name: String(stop), exact: true }).first().waitFor();
  await region.locator('[title="How the answer ends"]').first().waitFor();
  expect(await region.getByText("no gradient").count()).toBe(0);
});

test("best and lowest are a key away, and the tab stays", async () => {
  const { id, group } = await varied();
  const page = await open(`/?place={example}&r=${id}&tab=group`);
  await page.getByRole("button", { name: "Best of the group" }).waitFor();
  await page.keyboard.press("Shift+B");
  expect(params(page).get("r")).toBe(group.best);
  await page.keyboard.press("Shift+L");
  expect(params(page).get("r")).toBe(group.worst);
  const rewards = column(group, "reward");
  const names = column(group, "sample_index");
  const last = rewards.length - 1;
  await page.getByRole("button", { name: new RegExp(`^Open rollout ${String(names[last])}, reward`) }).click();
  expect(params(page).get("r")).toBe(group.rollouts[last]?.id);
  expect(params(page).get("tab")).toBe("group");
});

test("a group without variance says that there is no gradient", async () => {
  const view = await viewOf();
  const [id = ""] = await first(view, WITH("min(reward) = max(reward) AND count(reward) = count(*)"));
  const group = await groupOf(view, String(id));
  expect(group.zero_variance).toBe(true);
  const page = await open(`/?place={example}&r=${id}&tab=group`);
  await page.getByText(new RegExp(`All ${group.total} rewards are .*no gradient`)).waitFor();
});

test("two marked rollouts are compared", async () => {
  const { id, group } = await varied();
  const page = await open(`/?place={example}&r=${id}&tab=group`);
  const boxes = page.getByRole("region", { name: "Group", exact: true }).getByRole("checkbox");
  await boxes.nth(1).click();
  await boxes.nth(2).click();
  await page.getByRole("button", { name: "Diff the two marked rollouts" }).click();
  expect([params(page).get("r"), params(page).get("other")]).toEqual([group.rollouts[1]?.id, group.rollouts[2]?.id]);
  await page.getByRole("tab", { name: "Diff", selected: true }).waitFor();
});
