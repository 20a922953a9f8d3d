/** The row that is open in the reader, and the keys that go from it to others. */

import { useCallback, useEffect, useRef, useState } from "react";
import { useKey } from "@/keys/keys";
import { useViewState } from "@/state/location";
import type { Pages } from "./usePages";

export interface Cursor {
  /** Where it stands, if that is known: a link opens a rollout that may be anywhere. */
  index: number | undefined;
  open: (index: number, how?: "push" | "replace") => void;
  move: (by: number) => void;
}

interface Around {
  pages: Pages;
  /** Where to begin when no row is chosen. */
  firstInSight: number;
  reveal: (index: number) => void;
}

export function useCursor({ pages, firstInSight, reveal }: Around): Cursor {
  const [{ rollout }, set] = useViewState();
  const [last, setLast] = useState<{ id: string; index: number } | null>(null);
  // Where the keys are, which is ahead of the rows while a page is on its way.
  const target = useRef<number | null>(null);
  const { row, find, fetch, total = 0, isOld } = pages;
  const remembered = last !== null && last.id === rollout ? last.index : undefined;
  const there = remembered === undefined ? undefined : row(remembered);
  const isThere = remembered !== undefined && (there === undefined || there.id === rollout) && !isOld;
  const index = rollout === null ? undefined : isThere ? remembered : find(rollout);
  useEffect(() => {
    target.current = index ?? null;
  }, [index, rollout]);

  const open = useCallback(
    (to: number, how: "push" | "replace" = "push") => {
      target.current = to;
      reveal(to);
      const show = (id: string) => {
        setLast({ id, index: to });
        // A place in one rollout means nothing in another.
        set({ rollout: id, message: null, range: null, other: null }, how);
      };
      const here = row(to);
      if (here) show(here.id);
      else {
        fetch(to).then(
          (fetched) => fetched && target.current === to && show(fetched.id),
          () => (target.current = null),
        );
      }
    },
    [reveal, row, fetch, set],
  );
  const move = useCallback(
    (by: number) => {
      if (total === 0) return;
      const from = target.current;
      const to = from === null ? firstInSight : from + by;
      open(Math.min(Math.max(0, to), total - 1), "replace");
    },
    [total, firstInSight, open],
  );
  useKey({ keys: "j", label: "Next row", group: "Rows", run: () => move(1) });
  useKey({ keys: "k", label: "Row before", group: "Rows", run: () => move(-1) });
  return { index, open, move };
}
