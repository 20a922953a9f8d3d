/** `rollyard demo`, at the address that it prints. */

import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterEach, expect, inject, test } from "vitest";
import { expectTrouble, leave, open } from "./page";
import { BINARY } from "./setup";

/** The warm-up alone takes seconds, and on a busy machine a minute. */
const PATIENCE_MS = 180_000;

let running: ChildProcess | undefined;

afterEach(async () => {
  await leave();
  running?.kill("SIGKILL");
  running = undefined;
});

interface Demo {
  url: URL;
  /** Tells it to stop after the step that it is at; gives its exit code and all that it said. */
  end: () => Promise<{ code: number | null; said: string }>;
}

/** More steps than anybody waits for: it is the test that ends it, and never itself while somebody looks. */
async function startDemo(): Promise<Demo> {
  const out = join(mkdtempSync(join(inject("folder"), "demo-")), "run");
  const cache = join(inject("folder"), "demo-cache");
  const child = spawn(BINARY, ["demo", "--steps", "100000", "--listen", "127.0.0.1:0", "--out", out], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, XDG_CACHE_HOME: cache },
  });
  running = child;
  let said = "";
  const ended = new Promise<{ code: number | null; said: string }>((done) => child.once("close", (code) => done({ code, said })));
  const url = await new Promise<string>((found, failed) => {
    const listen = (chunk: Buffer) => {
      said += chunk.toString();
      const match = /^viewer +(http:\S+)/m.exec(said);
      if (match?.[1] !== undefined) found(match[1]);
    };
    child.stdout.on("data", listen);
    child.stderr.on("data", listen);
    child.once("close", (code) => failed(new Error(`the demo ended with ${code ?? "a signal"}: ${said}`)));
  });
  const end = () => {
    child.kill("SIGINT");
    return ended;
  };
  return { url: new URL(url), end };
}

const cell = (page: Page, column: number) => page.getByRole("grid", { name: "Rows" }).locator(`[aria-rowindex="2"] [aria-colindex="${column}"]`);
const newestStep = async (page: Page) => Number((await cell(page, 2).innerText()).replaceAll(",", ""));

test("rows of a policy appear while it learns, and one of them has its question, its answer and its tokens", { timeout: 2 * PATIENCE_MS }, async () => {
  const demo = await startDemo();
  // Nothing is archived before the warm-up is over, and the browser notes each time that it asked in vain.
  expectTrouble(/404/);
  const page = await open(demo.url.pathname + demo.url.search, { url: demo.url.origin });
  await cell(page, 4).waitFor({ timeout: PATIENCE_MS });
  expect(await cell(page, 4).innerText()).toMatch(/^\d\d\+\d\d$/);
  const before = await newestStep(page);
  await expect.poll(() => newestStep(page), { timeout: PATIENCE_MS }).toBeGreaterThan(before + 2);

  await page.keyboard.press("j");
  const rollout = page.getByRole("article", { name: "Rollout" });
  const messages = rollout.getByRole("region", { name: "Messages" });
  await messages.getByText(/^\d\d\+\d\d$/).waitFor();
  const heads = await messages.getByRole("heading", { level: 3 }).allInnerTexts();
  expect(heads.map((head) => /user|assistant/.exec(head)?.[0])).toEqual(["user", "assistant"]);
  const question = await messages.getByText(/^\d\d\+\d\d$/).innerText();
  await page.keyboard.press("t");
  const tokens = rollout.getByRole("listbox", { name: "Tokens in order" });
  await tokens.waitFor();
  const [prompt = "", answer = ""] = (await tokens.getByRole("option").allInnerTexts()).join("").split("<|assistant|>");
  expect(prompt).toBe(`<|user|>${question}<|end|>`);
  expect(answer).not.toBe("");

  await page.close();
  const { code, said } = await demo.end();
  expect(said.match(/✓/g)).toHaveLength(4);
  expect(code).toBe(0);
});
