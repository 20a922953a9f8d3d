/** What happens around the page: servers that go, files that vanish, tokens that are asked for. */

import type { ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, inject, test } from "vitest";
import { expectTrouble, leave, open } from "./page";
import { serve, stop } from "./setup";

const started: ChildProcess[] = [];

afterEach(async () => {
  await leave();
  for (const child of started.splice(0)) await stop(child);
});

async function start(folder: string, flags: string[] = [], listen?: string): Promise<string> {
  const server = await serve(folder, flags, listen);
  started.push(server.process);
  return server.url;
}

function run(folder: string): string {
  const place = join(folder, "run.jsonl");
  const rollout = (n: number) => ({ messages: [{ role: "user", content: `What is ${n} + ${n}?` }, { role: "assistant", content: `It is ${2 * n}.` }], attributes: { step: n, reward: 1, rollout_n: n } });
  writeFileSync(place, [1, 2, 3].map((n) => JSON.stringify(rollout(n)) + "\n").join(""));
  return place;
}

test("a server that goes away is said, what is on screen stays, and all goes on when it is back", async () => {
  const folder = mkdtempSync(join(inject("folder"), "away-"));
  const place = run(folder);
  const url = await start(folder);
  const page = await open(`/?place=${encodeURIComponent(place)}`, { url });
  await page.getByText("3 rows", { exact: true }).waitFor();
  expectTrouble(/ERR_CONNECTION_REFUSED|Failed to load resource|Failed to fetch/);
  for (const child of started.splice(0)) await stop(child);
  await page.getByRole("grid", { name: "Rows" }).press("Enter");
  await page.getByText("The server does not answer.").waitFor();
  await page.getByText("3 rows", { exact: true }).waitFor();
  await start(folder, [], new URL(url).host);
  await page.getByText("The server does not answer.").waitFor({ state: "detached" });
  await page.getByText("It is 2.").waitFor();
});

test("a file that vanishes leaves its rows, and says what is gone when one is opened", async () => {
  const folder = mkdtempSync(join(inject("folder"), "gone-"));
  const place = run(folder);
  const page = await open(`/?place=${encodeURIComponent(place)}`);
  await page.getByText("3 rows", { exact: true }).waitFor();
  rmSync(place);
  expectTrouble(/Failed to load resource/);
  await page.getByRole("grid", { name: "Rows" }).press("Enter");
  await page.getByText(/run\.jsonl/).last().waitFor();
  await page.getByRole("alert").or(page.getByText(/not be read|is gone|not found|no such/i)).first().waitFor();
});

test("where a token is needed it is asked for once", async () => {
  const folder = mkdtempSync(join(inject("folder"), "token-"));
  const place = run(folder);
  const url = await start(folder, ["--token", "s3cret-enough-for-a-test"]);
  expectTrouble(/401/);
  const page = await open(`/?place=${encodeURIComponent(place)}`, { url });
  await page.getByLabel("Token").fill("wrong");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").waitFor();
  await page.getByLabel("Token").fill("s3cret-enough-for-a-test");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("3 rows", { exact: true }).waitFor();
  const cookies = await page.context().cookies();
  expect(cookies.map(({ httpOnly, sameSite }) => ({ httpOnly, sameSite }))).toEqual([{ httpOnly: true, sameSite: "Strict" }]);
  expect(JSON.stringify(cookies)).not.toContain("s3cret");
  await page.reload();
  await page.getByText("3 rows", { exact: true }).waitFor();
});
