import { expect, inject, test } from "vitest";
import { get, post } from "./api";
import { open } from "./page";

/** Four of eight rollouts of a prompt: a group that waits. */
async function halfGroup(run: string) {
  await post("/api/runs", { name: run });
  const rollouts = Array.from({ length: 4 }, (_, i) => ({ instance_id: "prompt-1", uid: `${run}-${i}`, messages: [{ role: "user", content: "2 + 2?" }], reward: i % 2 }));
  for (const rollout of rollouts) await post(`/runs/${run}/buffer/write`, rollout);
}

test("the overview shows a run's books, its open groups, and leads to its rollouts", async () => {
  const run = `live-${Date.now()}`;
  await halfGroup(run);
  const page = await open("/live");
  await page.getByRole("navigation", { name: "Runs" }).getByRole("button", { name: new RegExp(`^${run}`) }).click();
  await page.getByRole("heading", { name: run }).waitFor();
  const books = page.getByRole("region", { name: "Books" });
  await books.getByText("4 admitted").waitFor();
  await books.getByText("balanced").waitFor();
  await books.getByRole("img", { name: "Held 4, With readers 0, Trained 0, Dropped 0" }).waitFor();
  const open_ = page.getByRole("region", { name: "Open groups" });
  await open_.getByRole("row", { name: /prompt-1 4 of 8/ }).waitFor();
  await page.getByRole("link", { name: "Look at its rollouts" }).waitFor();
});

test("what is written while one looks is counted within two seconds", async () => {
  const run = `counted-${Date.now()}`;
  await halfGroup(run);
  const page = await open(`/live?run=${run}`);
  const books = page.getByRole("region", { name: "Books" });
  await books.getByText("4 admitted").waitFor();
  await post(`/runs/${run}/buffer/write`, { instance_id: "prompt-2", uid: `${run}-more`, messages: [{ role: "user", content: "3 + 3?" }], reward: 1 });
  await books.getByText("5 admitted").waitFor({ timeout: 2000 });
  const told = await get<{ books: { admitted: number } }>(`/api/runs/${run}`);
  expect(told.books.admitted).toBe(5);
});

test("the overview says where it is", async () => {
  expect(inject("url")).toMatch(/^http/);
  const page = await open("/live");
  await page.getByRole("link", { name: "Live" }).and(page.locator("[aria-current='page']")).waitFor();
});
