import { expect, test } from "vitest";
import { expectTrouble, open, params } from "./page";
import { total, write } from "./left";

const rows = [
  { rollout_n: 7, text: "nothing here" },
  { rollout_n: 42, text: "é 😀 wait, that is wrong" },
  { rollout_n: 9, text: "first" },
  { rollout_n: 9, text: "second" },
];

test("an older link opens the rollout, the message and the text that it names", async () => {
  const place = write(rows);
  const query = new URLSearchParams({ file: place, rollout: "42", message: "1", highlight: "wait, that" });
  const page = await open(`/?${query.toString()}`);
  await expect.poll(() => params(page).get("place")).toBe(place);
  expect(params(page).get("r")).toMatch(/^[0-9a-f]{32}$/);
  expect(params(page).get("m")).toBe("1");
  expect(params(page).get("c")).toBe("4-14");
  expect(params(page).has("file")).toBe(false);
  await page.getByRole("article", { name: "Rollout" }).waitFor();
});

test("an older link whose number is not the only one says so", async () => {
  const place = write(rows);
  const page = await open(`/?${new URLSearchParams({ file: place, rollout: "9" }).toString()}`);
  await page.getByText("The link means rollout 9, and 2 rollouts have that number. This is the first.").waitFor();
  await page.getByRole("button", { name: "Show all of them" }).click();
  await expect.poll(() => params(page).getAll("f")).toEqual(["rollout_n == 9"]);
  expect(await total(place, "rollout_n == 9")).toBe(2);
  await page.getByRole("button", { name: "Dismiss" }).click();
  await expect.poll(() => page.getByText("The link means rollout 9").count()).toBe(0);
});

test("an older link to a text that is gone searches for it", async () => {
  const place = write(rows);
  const page = await open(`/?${new URLSearchParams({ file: place, rollout: "7", message: "1", highlight: "wait, that" }).toString()}`);
  await page.getByText("The highlighted text is not in this rollout; it is searched for.").waitFor();
  expect(params(page).get("s")).toBe("all:c::wait, that");
});

test("an older link to a number that is gone says so", async () => {
  expectTrouble(/404/);
  const page = await open(`/?${new URLSearchParams({ file: write(rows), rollout: "1234" }).toString()}`);
  await page.getByText("The link means rollout 1234, and no rollout here has that number.").waitFor();
});
