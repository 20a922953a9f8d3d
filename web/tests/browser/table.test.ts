import { writeFileSync, mkdtempSync } from "node:fs";
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";
import { describe, expect, inject, test } from "vitest";
import { expectTrouble, open, params } from "./page";

interface RowsAnswer {
  total: number;
  rows: { id: string; values: unknown[] }[];
}

/** What the server says, to compare what is on screen with. */
async function rowsOf(page: Page, query: Record<string, string> = {}, place = inject("example")): Promise<RowsAnswer> {
  const opened = await page.request.post(`${inject("url")}/api/view/open`, { data: { places: [place] } });
  const { view } = (await opened.json()) as { view: string };
  const isDone = async () => {
    const looked = await page.request.get(`${inject("url")}/api/view/${view}`);
    return ((await looked.json()) as { indexing: { done: boolean } }).indexing.done;
  };
  await expect.poll(isDone, { timeout: 10_000 }).toBe(true);
  const answer = await page.request.get(`${inject("url")}/api/view/${view}/rows`, { params: { columns: "step,reward", ...query } });
  return (await answer.json()) as RowsAnswer;
}

const grid = (page: Page) => page.getByRole("grid", { name: "Rows" });
const row = (page: Page, id: string) => grid(page).locator(`[data-id="${id}"]`);
const idAt = (page: Page, n: number) => grid(page).locator(`[aria-rowindex="${n + 2}"]`).getAttribute("data-id");
const text = async (locator: Locator) => (await locator.innerText()).trim();

/** The first page is there and indexing is done. */
async function settled(page: Page) {
  const { total } = await rowsOf(page);
  await page.getByRole("status").filter({ hasText: `${total.toLocaleString("en")} rows` }).first().waitFor();
}

function number(n: number): string {
  return n.toLocaleString("en");
}

describe("the table", () => {
  test("shows all rows of the view and counts those of the filter", async () => {
    const page = await open("/?place={example}");
    await settled(page);
    const all = await rowsOf(page);
    expect(await grid(page).getAttribute("aria-rowcount")).toBe(String(all.total + 1));
    await row(page, all.rows[0]!.id).waitFor();
    const some = await open(`/?place={example}&f=${encodeURIComponent("reward > 0.5")}`);
    const good = await rowsOf(some, { filter: "reward > 0.5" });
    await some.getByText(`${number(good.total)} of ${number(all.total)} rows`).waitFor();
    expect(good.total).toBeLessThan(all.total);
  });

  test("sorts by a click, turns by another, and adds a second with Shift", async () => {
    const page = await open("/?place={example}");
    await settled(page);
    const head = page.getByRole("columnheader", { name: "reward" });
    await head.getByRole("button").click();
    await expect.poll(() => params(page).get("sort")).toBe("-reward");
    expect(await head.getAttribute("aria-sort")).toBe("descending");
    await expect.poll(() => idAt(page, 0)).toBe((await rowsOf(page, { sort: "-reward" })).rows[0]!.id);
    await head.getByRole("button").click();
    await expect.poll(() => params(page).get("sort")).toBe("reward");
    await page.getByRole("columnheader", { name: "step" }).getByRole("button").click({ modifiers: ["Shift"] });
    await expect.poll(() => params(page).get("sort")).toBe("reward,step");
    await expect.poll(() => idAt(page, 0)).toBe((await rowsOf(page, { sort: "reward,step" })).rows[0]!.id);
  });

  test("reaches the last row, and shows there what the server has there", async () => {
    const page = await open("/?place={example}");
    await settled(page);
    const { total } = await rowsOf(page);
    const { rows } = await rowsOf(page, { offset: String(total - 1) });
    await grid(page).focus();
    await page.keyboard.press("End");
    await expect.poll(() => params(page).get("r")).toBe(rows[0]!.id);
    await row(page, rows[0]!.id).waitFor();
    expect(await row(page, rows[0]!.id).getAttribute("aria-selected")).toBe("true");
    await page.keyboard.press("Home");
    await expect.poll(() => params(page).get("r")).toBe((await rowsOf(page)).rows[0]!.id);
  });

  test("j and k open the next row and the one before, across pages", async () => {
    const page = await open("/?place={example}");
    await settled(page);
    const { rows } = await rowsOf(page, { limit: "300" });
    await page.keyboard.press("j");
    await expect.poll(() => params(page).get("r")).toBe(rows[0]!.id);
    await grid(page).focus();
    const at = () => rows.findIndex(({ id }) => id === params(page).get("r"));
    for (let last = 0; last < 80; last = at()) {
      await page.keyboard.press("PageDown");
      await expect.poll(at).toBeGreaterThan(last);
    }
    const from = at();
    for (let n = 0; n < 25; n++) await page.keyboard.press("j");
    await expect.poll(at).toBe(from + 25);
    await row(page, rows[from + 25]!.id).waitFor();
    await page.keyboard.press("k");
    await expect.poll(at).toBe(from + 24);
  });

  test("n and p go through the group, brackets through the steps", async () => {
    const page = await open("/?place={example}");
    await settled(page);
    const { rows } = await rowsOf(page, { filter: "step == 2" });
    await page.goto(`${inject("url")}/?place=${encodeURIComponent(inject("example"))}&r=${rows[0]!.id}`);
    await settled(page);
    const key = new URL(page.url());
    expect(key.searchParams.get("r")).toBe(rows[0]!.id);
    const opened = await page.request.post(`${inject("url")}/api/view/open`, { data: { places: [inject("example")] } });
    const { view } = (await opened.json()) as { view: string };
    const group = (await (await page.request.get(`${inject("url")}/api/view/${view}/rollouts/${rows[0]!.id}/group`)).json()) as {
      rollouts: { id: string }[];
    };
    const at = group.rollouts.findIndex(({ id }) => id === rows[0]!.id);
    await page.keyboard.press("n");
    await expect.poll(() => params(page).get("r")).toBe(group.rollouts[at + 1]!.id);
    await page.keyboard.press("p");
    await expect.poll(() => params(page).get("r")).toBe(rows[0]!.id);
    await page.keyboard.press("]");
    await expect.poll(() => params(page).get("r")).toBe((await rowsOf(page, { filter: "step == 3" })).rows[0]!.id);
    await page.keyboard.press("[");
    await expect.poll(() => params(page).get("r")).toBe(rows[0]!.id);
  });

  test("shows the columns of the URL, which the chooser changes and moves", async () => {
    const page = await open("/?place={example}");
    await settled(page);
    await page.keyboard.press("c");
    const chooser = page.getByRole("dialog", { name: "Choose columns" });
    await chooser.getByRole("searchbox").fill("reward.");
    await chooser.getByRole("list", { name: "Other columns" }).getByRole("checkbox").first().click();
    await expect.poll(() => params(page).has("cols")).toBe(true);
    const added = params(page).get("cols")?.split(",").at(-1) ?? "";
    expect(added).toMatch(/^reward\./);
    await page.getByRole("columnheader", { name: added }).waitFor();
    await chooser.getByRole("searchbox").fill("");
    await chooser.getByRole("list", { name: "Shown columns" }).getByRole("checkbox", { name: added }).press("Alt+ArrowUp");
    await expect.poll(() => params(page).get("cols")?.split(",").at(-2)).toBe(added);
    await chooser.getByRole("button", { name: "Show the usual columns" }).click();
    await expect.poll(() => params(page).has("cols")).toBe(false);
    await page.keyboard.press("Escape");
    await chooser.waitFor({ state: "detached" });
  });

  test("shows parts of a reward, staleness, and why a rollout was dropped", async () => {
    const page = await open("/?place={example}&cols=status,reason,lag,reward.format&f=" + encodeURIComponent('status == "dropped"'));
    const { rows } = await rowsOf(page, { filter: 'status == "dropped"', columns: "reason,reward.format" });
    const first = rows.find((one) => typeof one.values[0] === "string");
    const shown = row(page, first!.id);
    await shown.waitFor();
    expect(await text(shown)).toContain(`dropped: ${String(first!.values[0]).replaceAll("_", " ")}`);
    const old = await open("/?place={example}&cols=lag,version&sort=-lag");
    const { rows: oldest } = await rowsOf(old, { sort: "-lag", columns: "lag,version" });
    const cell = row(old, oldest[0]!.id).getByRole("gridcell").nth(1);
    await cell.waitFor();
    expect(await text(cell)).toContain(String(oldest[0]!.values[0]));
    expect(await cell.locator("[title*='behind']").count()).toBe(1);
  });

  test("makes a column wider with the keyboard and keeps it", async () => {
    const page = await open("/?place={example}");
    await settled(page);
    const edge = page.getByRole("separator", { name: "Width of source" });
    const before = Number(await edge.getAttribute("aria-valuenow"));
    await edge.focus();
    await page.keyboard.press("ArrowRight");
    await expect.poll(() => edge.getAttribute("aria-valuenow")).toBe(String(before + 16));
    await page.reload();
    await expect.poll(() => edge.getAttribute("aria-valuenow")).toBe(String(before + 16));
  });

  test("marks rows, and compares two of them", async () => {
    const page = await open("/?place={example}");
    await settled(page);
    const { rows } = await rowsOf(page);
    await page.getByRole("checkbox", { name: "Mark row 2", exact: true }).click();
    await page.getByRole("checkbox", { name: "Mark row 5", exact: true }).click({ modifiers: ["Shift"] });
    await page.getByRole("button", { name: "Unmark 4 rows" }).waitFor();
    await page.keyboard.press("Shift+U");
    await row(page, rows[0]!.id).click();
    await page.keyboard.press("x");
    await page.keyboard.press("j");
    await expect.poll(() => params(page).get("r")).toBe(rows[1]!.id);
    await page.keyboard.press("x");
    await page.getByRole("button", { name: "Unmark 2 rows" }).waitFor();
    await page.keyboard.press("d");
    await expect.poll(() => [params(page).get("r"), params(page).get("other"), params(page).get("tab")]).toEqual([rows[0]!.id, rows[1]!.id, "diff"]);
  });

  test("keeps the old rows when a filter is refused, and offers a way out when none fits", async () => {
    expectTrouble(/400/);
    const page = await open("/?place={example}");
    await settled(page);
    const { rows } = await rowsOf(page);
    await page.evaluate(() => {
      history.pushState(null, "", `${location.search}&f=${encodeURIComponent("reward >")}`);
      dispatchEvent(new PopStateEvent("popstate"));
    });
    await page.getByText("These are the rows of the last filter that worked.").waitFor();
    await row(page, rows[0]!.id).waitFor();
    const empty = await open(`/?place={example}&f=${encodeURIComponent("step > 0")}&f=${encodeURIComponent("step == 987654")}`);
    await empty.getByText("No row fits the filter").waitFor();
    await empty.getByRole("button", { name: "Drop step == 987654" }).click();
    await expect.poll(() => params(empty).getAll("f")).toEqual(["step > 0"]);
    await row(empty, rows[0]!.id).waitFor();
  });

  test("draws hostile values as text", async () => {
    const folder = mkdtempSync(join(inject("folder"), "hostile-"));
    const source = '<img src=x onerror="document.title=1">';
    const rollout = { messages: [{ role: "user", content: "a" }], attributes: { step: 1, reward: 1, data_source: source } };
    writeFileSync(join(folder, "a.jsonl"), `${JSON.stringify(rollout)}\n`);
    const page = await open(`/?place=${encodeURIComponent(folder)}`);
    await grid(page).getByText(source).waitFor();
    expect(await grid(page).locator("img").count()).toBe(0);
  });
});
