/** What the tests of the left pane ask the server themselves, so that no number is written down twice. */

import { mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { inject } from "vitest";

async function answer<T>(path: string, init?: RequestInit): Promise<T> {
  const response = await fetch(inject("url") + path, init);
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as T;
}

export interface Row {
  step?: number;
  reward?: number;
  data_source?: string;
  rollout_n?: number;
  text?: string;
  lag?: number;
}

/** A fresh folder with one file; lines that are text are written as they are. */
export function write(rows: (Row | string)[], name = "run.jsonl"): string {
  const folder = mkdtempSync(join(inject("folder"), "left-"));
  const lines = rows.map((row, i) => {
    if (typeof row === "string") return row;
    const { text = "an answer", ...attributes } = row;
    return JSON.stringify({ messages: [{ role: "user", content: `question ${i}` }, { role: "assistant", content: text }], attributes });
  });
  writeFileSync(join(folder, name), lines.map((line) => `${line}\n`).join(""));
  return join(folder, name);
}

export interface View {
  view: string;
  indexing: { done: boolean; rows: number };
  health: Record<string, number>;
}

/** Opened and indexed to its end. */
export async function view(place: string): Promise<View> {
  const body = JSON.stringify({ places: [place] });
  let open = await answer<View>("/api/view/open", { method: "POST", headers: { "content-type": "application/json" }, body });
  const deadline = Date.now() + 20_000;
  while (!open.indexing.done) {
    if (Date.now() > deadline) throw new Error(`not indexed in time: ${place}`);
    open = await answer<View>(`/api/view/${open.view}`);
  }
  return open;
}

export async function total(place: string, filter: string): Promise<number> {
  const { view: key } = await view(place);
  const query = new URLSearchParams({ filter, limit: "1" });
  return (await answer<{ total: number }>(`/api/view/${key}/rows?${query.toString()}`)).total;
}

export async function facet(place: string, field: string, filter = ""): Promise<{ value: unknown; count: number }[]> {
  const { view: key } = await view(place);
  const query = new URLSearchParams({ filter, fields: field, values: "50" });
  const [found] = await answer<{ values: { value: unknown; count: number }[] }[]>(`/api/view/${key}/facets?${query.toString()}`);
  return found?.values ?? [];
}
