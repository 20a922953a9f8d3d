/** A real browser, and pages that fail their test when something goes wrong in them. */

import { existsSync } from "node:fs";
import { chromium, type Browser, type Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, inject } from "vitest";

let browser: Browser | undefined;
const trouble: string[] = [];
let expected: RegExp[] = [];

beforeAll(async () => {
  const executablePath = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
  if (!existsSync(executablePath)) throw new Error(`the browser tests need Chromium; install it, or say where in CHROMIUM: ${executablePath}`);
  browser = await chromium.launch({
    executablePath,
    args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-dev-shm-usage"],
  });
});

afterAll(() => browser?.close());

afterEach(async () => {
  await leave();
  const unexpected = trouble.splice(0).filter((line) => !expected.some((pattern) => pattern.test(line)));
  expected = [];
  // A test may pass although the console is full of errors; it should not.
  expect(unexpected).toEqual([]);
});

/** Closes all pages: whoever stops a server does it first, or a page that asks once more finds nobody. */
export async function leave() {
  for (const context of browser?.contexts() ?? []) await context.close();
}

/** Lines of the console that this test is about. */
export function expectTrouble(pattern: RegExp) {
  expected.push(pattern);
}

export interface Look {
  theme?: "light" | "dark";
  width?: number;
  height?: number;
  url?: string;
}

/** Opens a path of the server. `{example}` stands for the place of the example run, ready for a URL. */
export async function open(path: string, look: Look = {}): Promise<Page> {
  if (!browser) throw new Error("the browser is not there yet");
  const context = await browser.newContext({
    viewport: { width: look.width ?? 1440, height: look.height ?? 900 },
    colorScheme: look.theme ?? "light",
    reducedMotion: "reduce",
  });
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const page = await context.newPage();
  page.setDefaultTimeout(10_000);
  page.on("console", (message) => message.type() === "error" && trouble.push(message.text()));
  page.on("pageerror", (error) => trouble.push(String(error)));
  await page.goto((look.url ?? inject("url")) + path.replaceAll("{example}", encodeURIComponent(inject("example"))));
  return page;
}

/** The part of the address after the question mark, by name. */
export function params(page: Page): URLSearchParams {
  return new URL(page.url()).searchParams;
}
