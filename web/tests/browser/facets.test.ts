import { expect, inject, test } from "vitest";
import { count } from "@/parts/numbers";
import { open, params } from "./page";
import { facet, total, write } from "./left";

test("values have their counts, narrow the rows by a click, and leave out by another", async () => {
  const place = inject("example");
  const [first, second] = await facet(place, "data_source");
  if (!first || !second) throw new Error("the example has sources");
  const page = await open("/?place={example}");
  const section = page.getByRole("region", { name: "data_source" });
  const value = (of: typeof first) => section.getByRole("button", { name: `${String(of.value)} ${count(of.count)}`, exact: true });
  await value(first).click();
  await expect.poll(() => params(page).getAll("f")).toEqual([`data_source == "${String(first.value)}"`]);
  expect(await value(first).getAttribute("aria-pressed")).toBe("true");
  // Its own choice does not hide the other values, and a second one is added.
  await value(second).click();
  await expect.poll(() => params(page).getAll("f")).toEqual([`data_source in ("${String(first.value)}", "${String(second.value)}")`]);
  // Other facets follow.
  const filter = params(page).get("f") ?? "";
  const [status] = await facet(place, "status", filter);
  await page.getByRole("region", { name: "status" }).getByRole("button", { name: `${String(status?.value)} ${count(status?.count ?? 0)}`, exact: true }).waitFor();
  await value(second).click({ modifiers: ["Alt"] });
  await value(first).click();
  await expect.poll(() => params(page).getAll("f")).toEqual([`data_source != "${String(second.value)}"`]);
});

test("leaving out a value keeps the rows that do not have the field", async () => {
  const place = inject("example");
  const values = await facet(place, "reason");
  const given = values.find((value) => value.value !== null);
  expect(values.some((value) => value.value === null)).toBe(true);
  const page = await open("/?place={example}");
  await page.getByRole("button", { name: `Leave out ${String(given?.value)}`, exact: true }).click();
  await expect.poll(() => params(page).getAll("f").length).toBe(1);
  const all = await total(place, "");
  expect(await total(place, params(page).get("f") ?? "")).toBe(all - (given?.count ?? 0));
});

test("rows are narrowed by their lag", async () => {
  const place = write([0, 0, 1, 3].map((lag) => ({ step: 5, lag, reward: 1 })));
  const page = await open(`/?place=${encodeURIComponent(place)}`);
  await page.getByRole("region", { name: "lag" }).getByRole("button", { name: "3 1", exact: true }).click();
  await expect.poll(() => params(page).getAll("f")).toEqual(["lag == 3"]);
});

test("flags are marks with the number of rows that have them", async () => {
  const marked = (await facet(inject("example"), "truncated")).find((value) => value.value === true);
  const page = await open("/?place={example}");
  await page.getByRole("region", { name: "Marks" }).getByRole("button", { name: `truncated ${count(marked?.count ?? 0)}`, exact: true }).click();
  await expect.poll(() => params(page).getAll("f")).toEqual(["truncated == true"]);
});

test("numbers are narrowed by a range, drawn or typed", async () => {
  const page = await open("/?place={example}");
  const section = page.getByRole("region", { name: "step", exact: true });
  const bars = section.getByRole("img");
  const box = await bars.boundingBox();
  if (!box) throw new Error("the bars have no place");
  await page.mouse.move(box.x + 2, box.y + 8);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width / 2, box.y + 8, { steps: 4 });
  await page.mouse.up();
  await expect.poll(() => params(page).get("f")).toMatch(/^step >= \d+ and step <= \d+$/);
  await section.getByRole("textbox", { name: "step to" }).fill("x");
  await section.getByRole("alert").getByText("x is not a number").waitFor();
  await section.getByRole("textbox", { name: "step from" }).fill("3");
  await section.getByRole("textbox", { name: "step to" }).fill("7");
  await page.keyboard.press("Enter");
  await expect.poll(() => params(page).getAll("f")).toEqual(["step >= 3 and step <= 7"]);
  await section.getByRole("button", { name: "Any step" }).click();
  await expect.poll(() => params(page).has("f")).toBe(false);
});

test("a long list is shown in full when asked for, and folding is remembered", async () => {
  const place = write(Array.from({ length: 30 }, (_, i) => ({ step: 1, reward: i % 2, data_source: `source-${i}` })));
  const page = await open(`/?place=${encodeURIComponent(place)}`);
  const section = page.getByRole("region", { name: "data_source" });
  await section.getByRole("button", { name: "Show all 30 values" }).click();
  await expect.poll(() => section.getByRole("listitem").count()).toBe(30);
  await section.getByRole("button", { name: "data_source" }).click();
  await expect.poll(() => section.getByRole("listitem").count()).toBe(0);
  await page.reload();
  await section.waitFor();
  expect(await section.getByRole("listitem").count()).toBe(0);
});

test("any other field can be listed", async () => {
  const page = await open("/?place={example}");
  await page.getByRole("combobox", { name: "List the values of another field" }).selectOption("turns");
  await page.getByRole("region", { name: "turns" }).waitFor();
  await page.getByRole("button", { name: "Do not list turns" }).click();
  await page.getByRole("region", { name: "turns" }).waitFor({ state: "detached" });
});
