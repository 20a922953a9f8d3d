import type { Page } from "playwright-core";
import { expect, inject, test } from "vitest";
import { open, params } from "./page";

interface GroupsAnswer {
  total: number;
  groups: { group_id: string; first: string; n: number; passes: number; zero_variance: boolean; reward_std: number | null }[];
}

async function groupsOf(page: Page, query: Record<string, string> = {}): Promise<GroupsAnswer> {
  const opened = await page.request.post(`${inject("url")}/api/view/open`, { data: { places: [inject("example")] } });
  const { view } = (await opened.json()) as { view: string };
  return (await (await page.request.get(`${inject("url")}/api/view/${view}/groups`, { params: query })).json()) as GroupsAnswer;
}

const grid = (page: Page) => page.getByRole("grid", { name: "Groups" });
const group = (page: Page, id: string) => grid(page).locator(`[data-group="${id}"]`);

test("groups are listed with passes and the missing gradient, and sorted by the spread of rewards", async () => {
  const page = await open("/?place={example}&list=groups");
  const { total, groups } = await groupsOf(page);
  await page.getByText(`${total.toLocaleString("en")} groups`).last().waitFor();
  const [first] = groups;
  await group(page, first!.group_id).getByText(`${first!.passes}/${first!.n}`).waitFor();
  const dead = groups.slice(0, 20).find((one) => one.zero_variance);
  await group(page, dead!.group_id).getByText("no gradient").waitFor();
  const head = page.getByRole("columnheader", { name: "std" });
  await head.getByRole("button").click();
  await expect.poll(() => params(page).get("sort")).toBe("-reward_std");
  expect(await head.getAttribute("aria-sort")).toBe("descending");
  const { groups: widest } = await groupsOf(page, { sort: "-reward_std" });
  await expect.poll(() => grid(page).locator('[aria-rowindex="2"]').getAttribute("data-group")).toBe(widest[0]!.group_id);
});

test("a group opens its first rollout beside its siblings", async () => {
  const page = await open("/?place={example}&list=groups");
  const { groups } = await groupsOf(page);
  await group(page, groups[2]!.group_id).click();
  await expect.poll(() => [params(page).get("r"), params(page).get("tab")]).toEqual([groups[2]!.first, "group"]);
  await page.keyboard.press("j");
  await expect.poll(() => params(page).get("r")).toBe(groups[3]!.first);
});

test("only groups without a gradient are left on demand", async () => {
  const page = await open("/?place={example}&list=groups");
  await page.getByRole("button", { name: "Only groups without a gradient" }).click();
  await expect.poll(() => params(page).getAll("f")).toEqual(["dead_group == true"]);
  const dead = await groupsOf(page, { filter: "dead_group == true" });
  const all = await groupsOf(page);
  expect(dead.total).toBeGreaterThan(0);
  expect(dead.total).toBeLessThan(all.total);
  await page.getByText(`${dead.total.toLocaleString("en")} groups`).last().waitFor();
});
