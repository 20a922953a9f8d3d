/**
 * Rows that are marked for export, a diff or grading.
 *
 * They outlive the table, which goes when another list is looked at, and are too many for the URL.
 */

import { useCallback, useSyncExternalStore } from "react";

/** Their ids go into the URL of the download, and servers take 64 kB of that. */
export const SELECTED_MAX = 1_000;

const NONE: ReadonlySet<string> = new Set();

let of = "";
let ids = NONE;
const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export interface Selection {
  ids: ReadonlySet<string>;
  toggle: (id: string) => void;
  add: (more: string[]) => void;
  clear: () => void;
}

/** What is marked in one view; another view has none. */
export function useSelection(view: string): Selection {
  const marked = useSyncExternalStore(subscribe, () => (of === view ? ids : NONE));
  const put = useCallback(
    (next: ReadonlySet<string>) => {
      of = view;
      ids = new Set([...next].slice(0, SELECTED_MAX));
      for (const listener of listeners) listener();
    },
    [view],
  );
  const now = useCallback(() => (of === view ? ids : NONE), [view]);
  const toggle = useCallback((id: string) => put(now().symmetricDifference(new Set([id]))), [put, now]);
  const add = useCallback((more: string[]) => put(now().union(new Set(more))), [put, now]);
  const clear = useCallback(() => put(NONE), [put]);
  return { ids: marked, toggle, add, clear };
}
