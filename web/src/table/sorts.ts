/** `-reward,step` as the URL and the server have it, and as the table does. */

import type { SortingState } from "@tanstack/react-table";

export function parseSort(text: string): SortingState {
  const words = text.split(",").map((word) => word.trim()).filter(Boolean);
  return words.map((word) => ({ id: word.replace(/^[-+]/, ""), desc: word.startsWith("-") }));
}

export function formatSort(sorts: SortingState): string {
  return sorts.map(({ id, desc }) => (desc ? `-${id}` : id)).join(",");
}

/** A click on a head sorts by it alone, the next one turns it; with Shift it goes on from the sorts that are there. */
export function turned(sorts: SortingState, id: string, options: { descFirst: boolean; isMore: boolean }): SortingState {
  const now = sorts.find((sort) => sort.id === id);
  const next = { id, desc: now ? !now.desc : options.descFirst };
  if (!options.isMore) return [next];
  return now ? sorts.map((sort) => (sort.id === id ? next : sort)) : [...sorts, next];
}
