import { expect, inject, test } from "vitest";
import { get, openView } from "./api";
import { open, params } from "./page";

interface Histogram {
  n: number;
  bins: { from: number; to: number; count: number }[];
}

test("a bar of the distribution opens exactly the rows behind it", async () => {
  const view = await openView(inject("example"));
  const histogram = await get<Histogram>(`/api/view/${view}/histogram?field=reward&bins=40`);
  const page = await open("/?place={example}&list=figures");
  const bars = page.getByRole("group", { name: "Distribution of reward" }).getByRole("button");
  await expect.poll(() => bars.count()).toBe(histogram.bins.length);
  const first = histogram.bins.findIndex((bin) => bin.count > 0);
  await bars.nth(first).click();
  expect(params(page).get("list")).toBeNull();
  await page.getByText(new RegExp(`^${histogram.bins[first]?.count.toLocaleString("en") ?? ""} of [\\d,]+ rows`)).waitFor();
});

test("every source has its line, and a click narrows to it", async () => {
  const view = await openView(inject("example"));
  const [facet] = await get<{ values: { value: string; count: number }[] }[]>(`/api/view/${view}/facets?fields=data_source`);
  const page = await open("/?place={example}&list=figures");
  const table = page.getByRole("region", { name: "By source" });
  for (const { value, count } of facet?.values ?? []) {
    await table.getByRole("row", { name: new RegExp(`^${value} ${count.toLocaleString("en")} `) }).waitFor();
  }
  const [source] = facet?.values ?? [];
  await table.getByRole("button", { name: source?.value ?? "" }).click();
  expect(params(page).get("f")).toBe(`data_source == "${source?.value ?? ""}"`);
  await expect.poll(() => table.getByRole("row").count()).toBe(2);
});

test("a field that no row has says so", async () => {
  const page = await open("/?place={example}&list=figures&q=trained_step+is+null");
  await page.getByLabel("Field of the distribution").selectOption("trained_step");
  await page.getByText("No row has trained_step").waitFor();
});
