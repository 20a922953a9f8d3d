import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { AxeResults } from "axe-core";
import { expect, inject, test } from "vitest";
import { get, openView, type Schema } from "./api";
import { open } from "./page";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Every state that is a screen of its own. `{r}` is a rollout with tools, tokens and siblings. */
const STATES = {
  welcome: "/",
  rows: "/?place={example}",
  groups: "/?place={example}&list=groups",
  hits: "/?place={example}&list=hits&s=all:::the",
  figures: "/?place={example}&list=figures",
  compare: "/?place={example}&list=compare",
  chat: "/?place={example}&r={r}",
  tokens: "/?place={example}&r={r}&tab=tokens",
  group: "/?place={example}&r={r}&tab=group",
  diff: "/?place={example}&r={r}&tab=diff",
  info: "/?place={example}&r={r}&tab=info",
  live: "/live",
};

async function rollout(): Promise<string> {
  const view = await openView(inject("example"));
  const filter = encodeURIComponent("tool_calls > 0 AND tokens > 0");
  const rows = await get<Schema["RowsAnswer"]>(`/api/view/${view}/rows?filter=${filter}&limit=1`);
  return rows.rows[0]?.id ?? "";
}

for (const theme of ["light", "dark"] as const) {
  test.each(Object.entries(STATES))(`nothing serious stands in anybody's way: %s, ${theme}`, async (_, path) => {
    const page = await open(path.replace("{r}", await rollout()), { theme });
    await page.getByRole("main").locator("*").first().waitFor();
    await page.waitForLoadState("networkidle");
    await page.evaluate(AXE);
    const found = await page.evaluate(() => (window as unknown as { axe: { run: () => Promise<AxeResults> } }).axe.run());
    const serious = found.violations.filter((violation) => violation.impact === "serious" || violation.impact === "critical");
    expect(serious.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 5).map((node) => node.html.slice(0, 160)).join(" | ")}`)).toEqual([]);
  });
}

test("the keyboard alone opens a rollout, its group and the list of keys", async () => {
  const page = await open("/?place={example}");
  await page.getByRole("row").nth(2).waitFor();
  await page.keyboard.press("j");
  await page.getByRole("tab", { name: "Chat", selected: true }).waitFor();
  await page.keyboard.press("?");
  const keys = page.getByRole("dialog", { name: "Keys" });
  await keys.waitFor();
  for (const key of ["j", "k", "n", "p", "[", "]", "/", "f", "g", "d"]) await keys.locator("kbd").getByText(key, { exact: true }).first().waitFor();
  await page.keyboard.press("Escape");
  await keys.waitFor({ state: "detached" });
  await page.keyboard.press("g");
  await page.getByRole("tab", { name: "Group", selected: true }).waitFor();
});

test.each(["chat", "tokens", "group", "diff", "info"])("no key means two things: %s", async (tab) => {
  for (const list of ["rows", "groups", "hits", "figures"]) {
    const page = await open(`/?place={example}&list=${list}&s=all:::the&tab=${tab}&r=${await rollout()}`);
    await page.getByRole("article", { name: "Rollout" }).waitFor();
    await page.waitForLoadState("networkidle");
    await page.keyboard.press("?");
    const listed = await page.getByRole("dialog", { name: "Keys" }).locator("kbd").allInnerTexts();
    // `d` opens the diff, of the two marked rows if there are two; Escape closes what is in front.
    const twice = listed.filter((key, i) => listed.indexOf(key) !== i && !["d", "Escape"].includes(key));
    expect(twice).toEqual([]);
    await page.context().close();
  }
});

test("panes are as wide as the user makes them, by keys too, and stay so", async () => {
  const page = await open("/?place={example}");
  const edge = page.getByRole("separator", { name: "Width of the left pane" });
  const before = Number(await edge.getAttribute("aria-valuenow"));
  await edge.press("ArrowRight");
  await expect.poll(async () => Number(await edge.getAttribute("aria-valuenow"))).toBe(before + 16);
  await page.reload();
  await expect.poll(async () => Number(await edge.getAttribute("aria-valuenow"))).toBe(before + 16);
});

test("the theme is the system's until the user says otherwise", async () => {
  const page = await open("/?place={example}", { theme: "dark" });
  const theme = () => page.evaluate(() => document.documentElement.dataset["theme"]);
  expect(await theme()).toBe("dark");
  await page.getByRole("button", { name: "Switch between light and dark" }).click();
  expect(await theme()).toBe("light");
  await page.reload();
  expect(await theme()).toBe("light");
});
