import { expect, inject, test } from "vitest";
import { count } from "@/parts/numbers";
import { open, params } from "./page";
import { view, write } from "./left";

test("every number of the health card leads to its rows", async () => {
  const { health } = await view(inject("example"));
  const page = await open("/?place={example}");
  const card = page.getByRole("region", { name: "Health" });
  for (const [name, text] of [
    ["unclosed", "with an unclosed <think>"],
    ["truncated", "cut off at a limit"],
    ["odd", "with odd values, such as NaN"],
  ] as const) {
    const line = card.getByRole("button", { name: `${count(health[name] ?? 0)} ${text}` });
    await line.click();
    await expect.poll(() => params(page).getAll("f")).toEqual([`${name} == true`]);
    await line.click();
    await expect.poll(() => params(page).has("f")).toBe(false);
  }
});

test("dead groups lead to their rows", async () => {
  const { health } = await view(inject("example"));
  const page = await open("/?place={example}");
  const text = `${count(health["dead_groups"] ?? 0)} of ${count(health["groups"] ?? 0)} groups are dead`;
  await page.getByRole("region", { name: "Health" }).getByRole("button", { name: text }).click();
  await expect.poll(() => params(page).getAll("f")).toEqual(["dead_group == true"]);
});

test("rows that could not be read are listed with file, line, reason and bytes", async () => {
  const broken = '{"messages": <script>alert(1)</script>';
  const place = write([{ reward: 1 }, broken, { reward: 0 }]);
  const page = await open(`/?place=${encodeURIComponent(place)}`);
  await page.getByRole("button", { name: "1 of 3 rows could not be read — show them" }).click();
  const list = page.getByRole("dialog", { name: "Rows that could not be read" });
  await list.getByText(`${place}, line 2`).waitFor();
  await list.getByText("is not expected at byte").waitFor();
  await list.getByText(broken).waitFor();
  await page.keyboard.press("Escape");
  await list.waitFor({ state: "detached" });
});

test("copies are listed with their places", async () => {
  const row = { reward: 1, text: "the same" };
  const line = JSON.stringify({ messages: [{ role: "assistant", content: "the same" }], attributes: row });
  const place = write([line, line]);
  const page = await open(`/?place=${encodeURIComponent(place)}`);
  await page.getByRole("button", { name: "1 copy of other rows" }).click();
  await page.getByRole("dialog").getByRole("button", { name: `${place}, line 2 — show it` }).click();
  await expect.poll(() => params(page).get("r")).toMatch(/^[0-9a-f]{32}$/);
});

test("a run without faults has one quiet line", async () => {
  const page = await open(`/?place=${encodeURIComponent(write([{ reward: 1 }, { reward: 0 }]))}`);
  await page.getByText("Every row could be read, and nothing is odd.").waitFor();
});
