import { expect, inject, test } from "vitest";
import { expectTrouble, open, params } from "./page";
import { write } from "./left";

const ROWS = [
  { step: 1, reward: 0, data_source: "mäth" },
  { step: 1, reward: 1, data_source: "mäth" },
  { step: 2, reward: 1, data_source: "code" },
];

test("a filter is completed by field, operator and value, and runs", async () => {
  expectTrouble(/400/);
  const page = await open(`/?place=${encodeURIComponent(write(ROWS))}`);
  await page.getByRole("textbox", { name: "Filter" }).waitFor();
  await page.keyboard.press("q");
  await page.keyboard.type("data_s");
  await page.getByRole("option", { name: /^data_source/ }).waitFor();
  await page.keyboard.press("Tab");
  const field = page.getByRole("textbox", { name: "Filter" });
  await expect.poll(() => field.inputValue()).toBe("data_source ");
  await page.getByRole("option", { name: /^==/ }).click();
  await expect.poll(() => field.inputValue()).toBe("data_source == ");
  await page.getByRole("option", { name: '"mäth" 2 rollouts' }).waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await expect.poll(() => field.inputValue()).toBe('data_source == "mäth" ');
  // Behind a letter of two bytes: offsets of the server are not those of the browser.
  await page.keyboard.type("and rew");
  await page.getByRole("option", { name: /^reward reward/ }).click();
  await expect.poll(() => field.inputValue()).toBe('data_source == "mäth" and reward ');
  await page.keyboard.type("> 0.5");
  await page.keyboard.press("Enter");
  await expect.poll(() => params(page).get("q")).toBe('data_source == "mäth" and reward > 0.5');
  await page.goBack();
  await expect.poll(() => field.inputValue()).toBe("");
});

test("a filter that does not parse shows where, and changes nothing", async () => {
  expectTrouble(/400/);
  const place = encodeURIComponent(write(ROWS));
  const page = await open(`/?place=${place}&q=${encodeURIComponent("reward > 0.5")}`);
  const section = page.getByRole("region", { name: "data_source" });
  await section.getByRole("button", { name: /^mäth\s*1$/ }).waitFor();
  const field = page.getByRole("textbox", { name: "Filter" });
  await field.fill("rewrd > 0.5");
  await page.keyboard.press("Enter");
  const problem = page.getByRole("alert").filter({ hasText: "there is no field rewrd; did you mean reward?" });
  await problem.waitFor();
  expect(await page.locator('[data-bad="true"]').allTextContents()).toEqual(["rewrd"]);
  expect(await field.getAttribute("aria-invalid")).toBe("true");
  expect(params(page).get("q")).toBe("reward > 0.5");
  expect(await section.getByRole("button", { name: /^mäth\s*1$/ }).count()).toBe(1);
  await field.fill("reward > 0.9");
  await problem.waitFor({ state: "detached" });
  await expect.poll(() => params(page).get("q")).toBe("reward > 0.9");
});

test("a link with a filter that does not parse opens all the same, and blames the right clause", async () => {
  expectTrouble(/400/);
  const page = await open(`/?place=${encodeURIComponent(write(ROWS))}&f=${encodeURIComponent("step == 1")}&f=${encodeURIComponent("nonsense == 1")}`);
  await page.getByRole("listitem").filter({ hasText: "there is no field nonsense" }).waitFor();
  await page.getByRole("region", { name: "data_source" }).getByRole("button", { name: /^code\s*1$/ }).waitFor();
  await page.getByRole("button", { name: "Remove nonsense == 1" }).click();
  await expect.poll(() => page.getByRole("region", { name: "data_source" }).getByRole("button", { name: /^code/ }).count()).toBe(0);
});

test("what was clicked can be edited, removed and cleared", async () => {
  const page = await open(`/?place={example}&q=${encodeURIComponent("step > 1 or step == 0")}&f=${encodeURIComponent("reward >= 0")}&f=${encodeURIComponent("turns > 0")}`);
  await page.getByRole("button", { name: "Remove turns > 0" }).click();
  await expect.poll(() => params(page).getAll("f")).toEqual(["reward >= 0"]);
  await page.getByRole("button", { name: "reward >= 0", exact: true }).click();
  await expect.poll(() => params(page).get("q")).toBe("(step > 1 or step == 0) AND (reward >= 0)");
  expect(params(page).getAll("f")).toEqual([]);
  await page.keyboard.press("Shift+X");
  await expect.poll(() => params(page).has("q")).toBe(false);
});

test("the filter is copied as a command", async () => {
  const page = await open(`/?place={example}&q=${encodeURIComponent("uid != 'x'")}`);
  await page.getByRole("button", { name: "Copy as a command for the shell" }).click();
  await page.getByText("Copied").waitFor();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  expect(copied).toBe(`rollyard convert ${inject("example")} rows.jsonl --filter 'uid != '\\''x'\\'''`);
});

test("help has examples that run", async () => {
  const page = await open("/?place={example}");
  await page.getByRole("button", { name: "What a filter can say" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "lag > 2 and mixed" }).click();
  await expect.poll(() => params(page).get("q")).toBe("lag > 2 and mixed");
  await page.getByRole("dialog").waitFor({ state: "detached" });
});
