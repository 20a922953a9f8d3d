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

test("a server by itself shows no nodes", async () => {
  const run = `alone-${Date.now()}`;
  await halfGroup(run);
  const page = await open(`/live?run=${run}`);
  await page.getByRole("heading", { name: run }).waitFor();
  expect(await page.getByRole("region", { name: "Nodes" }).count()).toBe(0);
});

test("nodes are shown with what each owns, and lead to its run", async () => {
  const run = `owned-${Date.now()}`;
  await halfGroup(run);
  const page = await open("/live");
  const node = { alive: true, this: false, started: 0, heard_ms_ago: 120, runs: [] };
  await page.route("**/api/nodes", (route) =>
    route.fulfill({
      json: {
        node: "n0",
        clustered: true,
        nodes: [
          { ...node, node: "n0", url: "http://10.0.0.7:8889", this: true, runs: [{ run, epoch: 1 }] },
          { ...node, node: "n1", url: "http://10.0.0.8:8889", runs: [{ run: "default", epoch: 3 }] },
          { ...node, node: "n2", url: "http://10.0.0.9:8889", alive: false, heard_ms_ago: 7300 },
        ],
        runs: [
          { run, owner: "n0", epoch: 1 },
          { run: "lonely", owner: null, epoch: 0 },
        ],
      },
    }),
  );
  const nodes = page.getByRole("region", { name: "Nodes" });
  await nodes.getByRole("heading", { name: "Nodes: 2 of 3 alive" }).waitFor();
  await nodes.getByRole("row", { name: "n2 http://10.0.0.9:8889 not heard for 7 s" }).waitFor();
  await nodes.getByText("1 run without an owner: lonely").waitFor();
  await nodes.getByRole("row", { name: /^n0 \(this one\)/ }).getByRole("button", { name: run }).click();
  await page.getByRole("heading", { name: run, exact: true }).waitFor();
});

test("the overview says where it is", async () => {
  expect(inject("url")).toMatch(/^http/);
  const page = await open("/live");
  await page.getByRole("link", { name: "Live" }).and(page.locator("[aria-current='page']")).waitFor();
});
