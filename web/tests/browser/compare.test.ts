import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, inject, test } from "vitest";
import { get, openView } from "./api";
import { expectTrouble, open } from "./page";

/** The example once more, with every reward that is a number raised by a quarter. */
function better(): string {
  const place = mkdtempSync(join(inject("folder"), "compare-"));
  for (const file of readdirSync(inject("example"))) {
    const text = readFileSync(join(inject("example"), file), "utf8");
    writeFileSync(join(place, file), text.replace(/"reward":\s*(-?\d+(?:\.\d+)?)(?=[,}])/g, (_, reward: string) => `"reward":${Number(reward) + 0.25}`));
  }
  return place;
}

interface Comparison {
  shared: number;
  better: number;
  delta_mean: number;
}

test("two runs are compared on the prompts they share", async () => {
  const place = better();
  const [here, there] = [await openView(inject("example")), await openView(place)];
  const expected = await get<Comparison>(`/api/view/${here}/compare?with=${there}`);
  expect(expected.shared).toBeGreaterThan(10);
  expect(expected.delta_mean).toBeGreaterThan(0);
  const page = await open("/?place={example}&list=compare");
  await page.getByText("Compare with another run").waitFor();
  await page.getByLabel("Compare with").fill(place);
  await page.keyboard.press("Enter");
  await page.getByText(`${expected.shared} shared prompts`).waitFor();
  await page.getByText(`${expected.better} better,`).waitFor();
  await page.locator("tbody tr").first().getByRole("button").click();
  await page.getByRole("tab", { name: "Group", selected: true }).waitFor();
});

test("a run that is not there is said by its name", async () => {
  expectTrouble(/404/);
  const page = await open(`/?place={example}&list=compare&against=${encodeURIComponent(join(inject("folder"), "nowhere"))}`);
  await page.getByText("The other run cannot be compared").waitFor();
  await page.getByText(/nowhere/).first().waitFor();
});
