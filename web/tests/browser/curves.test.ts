import { expect, inject, test } from "vitest";
import { get, openView, type Steps } from "./api";
import { open, params } from "./page";

const CHART = "section[aria-label='Curve over the steps']";

test("the curve says how many rollouts it is made of, and a key shows exactly those of one step", async () => {
  const view = await openView(inject("example"));
  const steps = await get<Steps>(`/api/view/${view}/steps`);
  const page = await open("/?place={example}");
  const chart = page.locator(CHART);
  const all = steps.reduce((sum, step) => sum + step.n, 0);
  await chart.getByText(`${all.toLocaleString("en")} rollouts`).waitFor();

  await chart.getByRole("application").focus();
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowRight");
  const second = steps[1];
  await chart.getByText(`step ${second?.step ?? ""}: ${second?.n ?? ""} rollouts, ${second?.n_prompts ?? ""} prompts`).waitFor();
  await page.keyboard.press("Enter");
  expect(params(page).getAll("f")).toEqual([`step == ${second?.step ?? ""}`]);
  await page.getByText(`${second?.n ?? ""} of ${all.toLocaleString("en")} rows`).waitFor();
});

test("a brush over the curve narrows the rows to its steps, and the curve stays whole", async () => {
  const page = await open("/?place={example}");
  const field = page.locator(`${CHART} .u-over`);
  await field.waitFor();
  const box = await field.boundingBox();
  if (!box) throw new Error("the chart has no size");
  await page.mouse.move(box.x + box.width * 0.25, box.y + 40);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.5, box.y + 40, { steps: 5 });
  await page.mouse.up();
  await expect.poll(() => params(page).get("f")).toMatch(/^step >= \d+ AND step <= \d+$/);
  const [from, to] = (params(page).get("f")?.match(/\d+/g) ?? []).map(Number) as [number, number];
  const view = await openView(inject("example"));
  const steps = await get<Steps>(`/api/view/${view}/steps`);
  const inside = steps.filter((step) => step.step >= from && step.step <= to).reduce((sum, step) => sum + step.n, 0);
  const all = steps.reduce((sum, step) => sum + step.n, 0);
  await page.getByText(`${inside.toLocaleString("en")} of ${all.toLocaleString("en")} rows`).waitFor();
  await page.getByRole("button", { name: "Show all steps" }).click();
  await expect.poll(() => params(page).getAll("f")).toEqual([]);
});

test("the curve and its lines are in the URL", async () => {
  const page = await open("/?place={example}&curve=pass_at_k&series=data_source");
  const view = await openView(inject("example"));
  const steps = await get<Steps>(`/api/view/${view}/steps?series=data_source`);
  for (const source of new Set(steps.map((step) => step.series))) await page.locator(CHART).getByText(String(source)).waitFor();
  await page.getByLabel("Curve", { exact: true }).selectOption("dead_groups");
  await expect.poll(() => params(page).get("curve")).toBe("dead_groups");
});
