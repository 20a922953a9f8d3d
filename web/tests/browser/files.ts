/** Files that a test writes for itself, and what the server makes of them. */

import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, inject } from "vitest";

/** A file of its own, with these lines. */
export function file(name: string, lines: string[], folder = inject("folder")): string {
  mkdirSync(folder, { recursive: true });
  const path = join(mkdtempSync(join(folder, `${name}-`)), "run.jsonl");
  writeFileSync(path, lines.map((line) => line + "\n").join(""));
  return path;
}

/** Opens a place, waits until it is indexed, and gives the way to ask about it. */
export async function asking(place: string, url = inject("url")): Promise<(path: string) => Promise<unknown>> {
  const headers = { "content-type": "application/json" };
  const opened = await fetch(`${url}/api/view/open`, { method: "POST", headers, body: JSON.stringify({ places: [place] }) });
  const { view } = (await opened.json()) as { view: string };
  const ask = async (path: string): Promise<unknown> => (await fetch(`${url}/api/view/${view}${path}`)).json();
  await expect.poll(async () => ((await ask("")) as { indexing: { done: boolean } }).indexing.done, { timeout: 10_000 }).toBe(true);
  return ask;
}

/** Ids of the rows of a place. */
export async function idsOf(place: string, query: string, url = inject("url")): Promise<string[]> {
  const ask = await asking(place, url);
  return ((await ask(`/rows?${query}`)) as { rows: { id: string }[] }).rows.map(({ id }) => id);
}
