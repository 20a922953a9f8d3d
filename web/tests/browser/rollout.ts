/** A file with one rollout, opened in the reader. */

import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { expect, inject } from "vitest";
import { open, type Look } from "./page";

export interface Opened {
  page: Page;
  place: string;
  id: string;
}

/** Writes a row with these messages, or this line as it is, and opens it. `query` is put after its address. */
export async function openRollout(row: object[] | string, query = "", look: Look = {}): Promise<Opened> {
  mkdirSync(inject("folder"), { recursive: true });
  const place = join(mkdtempSync(join(inject("folder"), "chat-")), "one.jsonl");
  writeFileSync(place, (typeof row === "string" ? row : JSON.stringify({ messages: row, attributes: { step: 1, reward: 1 } })) + "\n");
  const id = await idOf(place);
  return { page: await open(`/?place=${encodeURIComponent(place)}&r=${id}${query}`, look), place, id };
}

async function idOf(place: string): Promise<string> {
  const url = inject("url");
  const opened = await fetch(`${url}/api/view/open`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ places: [place] }) });
  const { view } = (await opened.json()) as { view: string };
  let id: string | undefined;
  await expect
    .poll(
      async () => {
        const rows = await fetch(`${url}/api/view/${view}/rows?limit=1`);
        id = ((await rows.json()) as { rows?: { id: string }[] }).rows?.[0]?.id;
        return id;
      },
      { timeout: 15_000 },
    )
    .toBeTypeOf("string");
  if (id === undefined) throw new Error(`no row was indexed: ${place}`);
  return id;
}
