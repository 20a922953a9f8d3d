import { mkdtempSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, inject, test } from "vitest";
import { bytes, count } from "@/parts/numbers";
import { expectTrouble, open, params } from "./page";
import { view, write } from "./left";

const LINE = `${JSON.stringify({ messages: [{ role: "assistant", content: "x" }], attributes: { reward: 1 } })}\n`;

/** Files a, b10, b9 with 1, 2 and 3 lines, and one in a folder below. */
function folder(): string {
  const place = mkdtempSync(join(inject("folder"), "browse-"));
  mkdirSync(join(place, "deep"));
  for (const [name, lines] of [["a.jsonl", 1], ["b10.jsonl", 2], ["b9.jsonl", 3], ["deep/c.jsonl", 1]] as const) writeFileSync(join(place, name), LINE.repeat(lines));
  return place;
}

test("a first visit offers places, files and an example run", async () => {
  const page = await open("/");
  await page.getByRole("heading", { name: "Look at rollouts" }).waitFor();
  await page.getByRole("grid", { name: "Files" }).getByRole("row").first().waitFor();
  await page.getByRole("button", { name: "Look at an example run" }).click();
  await expect.poll(() => params(page).get("place")).not.toBeNull();
  await page.getByRole("region", { name: "Sources" }).waitFor();
});

test("a place that is typed is opened, and remembered", async () => {
  const place = write([{ reward: 1 }]);
  const page = await open("/");
  await page.getByRole("textbox", { name: "A file, folder, glob or bucket" }).fill(place);
  await page.keyboard.press("Enter");
  await expect.poll(() => params(page).getAll("place")).toEqual([place]);
  await page.getByRole("region", { name: "Sources" }).waitFor();
  await page.getByRole("link", { name: "Rollyard" }).click();
  await page.getByRole("region", { name: "Opened lately" }).getByRole("button").first().click();
  await expect.poll(() => params(page).getAll("place")).toEqual([place]);
});

test("a place that cannot be opened says why, and leaves the way to others", async () => {
  expectTrouble(/40[34]/);
  const page = await open("/?place=%2Fnot%2Fto%2Fbe%2Fshown");
  await page.getByRole("alert").getByText("This could not be opened").waitFor();
  await page.getByRole("grid", { name: "Files" }).waitFor();
});

test("what is open is shown with its size", async () => {
  const { indexing } = await view(inject("example"));
  const page = await open("/?place={example}");
  await page.getByRole("region", { name: "Sources" }).getByText(`${count(indexing.rows)} rows, `).waitFor();
});

test("the file browser goes by keyboard: folders, order, selection, marks", async () => {
  const place = folder();
  const page = await open(`/?place=${encodeURIComponent(join(place, "a.jsonl"))}`);
  await page.getByRole("region", { name: "Sources" }).waitFor();
  await page.keyboard.press("o");
  const dialog = page.getByRole("dialog", { name: "Open rollouts" });
  const grid = dialog.getByRole("grid", { name: "Files" });
  const names = async () => (await grid.getByRole("row").all()).length === 0 ? [] : grid.getByRole("row").evaluateAll((rows) => rows.map((row) => row.children[1]?.textContent));
  await expect.poll(names).toEqual(["deep/", "a.jsonl", "b9.jsonl", "b10.jsonl"]);
  await dialog.getByText(`1 folder, 3 files, ${bytes(6 * LINE.length)}`).waitFor();
  await grid.focus();
  await page.keyboard.press("Enter");
  await expect.poll(names).toEqual(["c.jsonl"]);
  await page.keyboard.press("Backspace");
  await expect.poll(names).toEqual(["deep/", "a.jsonl", "b9.jsonl", "b10.jsonl"]);
  await page.keyboard.press("End");
  await page.keyboard.press("m");
  await expect.poll(names).toEqual(["deep/", "b10.jsonl", "a.jsonl", "b9.jsonl"]);
  await dialog.getByRole("combobox", { name: "Order" }).selectOption("size");
  await expect.poll(names).toEqual(["deep/", "b10.jsonl", "b9.jsonl", "a.jsonl"]);
  await grid.focus();
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press(" ");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press(" ");
  await dialog.getByText(`2 places selected, ${bytes(5 * LINE.length)} in files`).waitFor();
  await dialog.getByRole("button", { name: "Add to what is open" }).click();
  await expect.poll(() => params(page).getAll("place")).toEqual(["a.jsonl", "b10.jsonl", "b9.jsonl"].map((name) => join(place, name)));
  await page.getByRole("button", { name: `Close ${join(place, "a.jsonl")}` }).click();
  await expect.poll(() => params(page).getAll("place").length).toBe(2);
});

test("the file browser looks below, filters by name, and lists thousands", async () => {
  const place = folder();
  mkdirSync(join(place, "many"));
  for (let i = 0; i < 1500; i += 1) writeFileSync(join(place, "many", `part-${i}.jsonl`), LINE);
  const page = await open(`/?place=${encodeURIComponent(join(place, "a.jsonl"))}`);
  await page.getByRole("button", { name: "Open other rollouts, or more of them" }).click();
  const dialog = page.getByRole("dialog", { name: "Open rollouts" });
  await dialog.getByRole("checkbox", { name: "Folders below too" }).check();
  await dialog.getByText(`1,504 files, ${bytes(1507 * LINE.length)}`).waitFor();
  const grid = dialog.getByRole("grid", { name: "Files" });
  expect(await grid.getAttribute("aria-rowcount")).toBe("1504");
  expect(await grid.getByRole("row").count()).toBeLessThan(100);
  await grid.focus();
  await page.keyboard.press("End");
  await grid.getByRole("row", { name: "many/part-1499.jsonl" }).waitFor();
  await dialog.getByRole("searchbox", { name: "Only names with" }).fill("part-77");
  await dialog.getByText("11 files, ").waitFor();
  await grid.getByRole("row", { name: "many/part-770.jsonl" }).click();
  await expect.poll(() => params(page).getAll("place")).toEqual([join(place, "many", "part-770.jsonl")]);
});

test("a folder that cannot be listed says so in its place", async () => {
  expectTrouble(/40[34]/);
  const place = folder();
  const page = await open(`/?place=${encodeURIComponent(join(place, "deep", "c.jsonl"))}`);
  await page.getByRole("region", { name: "Sources" }).waitFor();
  await page.route("**/api/view/browse?*", (route) =>
    route.request().url().includes(encodeURIComponent(dirname(join(place, "deep", "c.jsonl"))))
      ? route.fulfill({ status: 403, json: { error: { code: "forbidden", message: "this folder may not be read" } } })
      : route.continue(),
  );
  await page.keyboard.press("o");
  await page.getByRole("alert").getByText("this folder may not be read").waitFor();
});
