import type { Conversation } from "@/chat/parts";

/** What the server wrote into the file; see `view/bundle.rs`. */
export interface Bundled {
  title: string;
  filter: string;
  made_at: string;
  columns: string[];
  rows: Row[];
  rollouts: Record<string, Told>;
}

export interface Row {
  id: string;
  values: unknown[];
}

/** As much of a rollout's answer as is shown here. */
export type Told = Conversation & {
  id: string;
  summary: Record<string, unknown>;
  extra: Record<string, unknown>;
  problem: string | null;
};

export function read(page: Document): Bundled {
  const text = page.getElementById("rollouts")?.textContent;
  if (!text) throw new Error("this file has no rollouts in it; it may have been cut off while it was saved");
  return JSON.parse(text) as Bundled;
}

/** Rows in which every word stands, in any of the values or in the id. */
export function search(rows: readonly Row[], words: string): Row[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const has = (row: Row) => {
    const text = [row.id, ...row.values].map(shown).join(" ").toLowerCase();
    return wanted.every((word) => text.includes(word));
  };
  return rows.filter(has);
}

/** A value as a cell shows it. */
export function shown(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(4)));
  return typeof value === "string" || typeof value === "boolean" ? String(value) : JSON.stringify(value);
}
