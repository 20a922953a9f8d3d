/** Marks rows for what is done with several: x, Shift-click, the boxes. Two of them can be compared. */

import { useCallback, useRef } from "react";
import { useKey } from "@/keys/keys";
import { useViewState } from "@/state/location";
import { SELECTED_MAX, useSelection } from "./selection";
import type { Pages } from "./usePages";

interface Around {
  view: string;
  pages: Pages;
  cursor: number | undefined;
}

export function useMarking({ view, pages, cursor }: Around) {
  const { ids, toggle, add, clear } = useSelection(view);
  const [, set] = useViewState();
  /** Where a range begins. */
  const last = useRef<number | null>(null);
  const { row, fetch } = pages;

  const mark = useCallback(
    (index: number, isRange: boolean) => {
      const from = last.current;
      last.current = index;
      if (!isRange || from === null) {
        const id = row(index)?.id;
        if (id !== undefined) toggle(id);
        return;
      }
      const [low, high] = [Math.min(from, index), Math.min(Math.max(from, index), Math.min(from, index) + SELECTED_MAX - 1)];
      const places = Array.from({ length: high - low + 1 }, (_, at) => low + at);
      Promise.all(places.map(fetch)).then(
        (rows) => add(rows.filter((one) => one !== undefined).map((one) => one.id)),
        // The server is away, which the page says elsewhere; nothing is marked.
        () => undefined,
      );
    },
    [row, fetch, toggle, add],
  );
  const toggleCursor = useCallback(() => {
    if (cursor !== undefined) mark(cursor, false);
  }, [cursor, mark]);

  useKey({ keys: "x", label: "Mark the row", group: "Rows", run: toggleCursor });
  useKey(ids.size > 0 ? { keys: "Shift+U", label: "Unmark all rows", group: "Rows", run: clear } : null);
  const [one, two] = ids;
  const diff = () => {
    if (one !== undefined && two !== undefined) set({ rollout: one, other: two, tab: "diff", message: null, range: null });
  };
  useKey(ids.size === 2 ? { keys: "d", label: "Compare the two marked rows", group: "Rows", run: diff } : null);
  return { ids, mark, toggleCursor, clear };
}
