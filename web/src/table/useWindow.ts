/** Which of many rows are in sight, of an element that scrolls. */

import { useCallback, useEffect, useLayoutEffect, useRef, useState, type RefObject } from "react";
import { ROW_PX, ScrollSpace } from "./scrollSpace";

/** Drawn beyond the edges, so that a small move has them already. */
export const BEYOND = 8;

interface Drawn {
  first: number;
  last: number;
  /** Of the first row drawn, in the element. */
  y: number;
  height: number;
  isAtTop: boolean;
}

export interface RowWindow extends Drawn {
  /** For the element that scrolls. */
  element: RefObject<HTMLDivElement | null>;
  reveal: (index: number) => void;
  toTop: () => void;
  rowsInSight: number;
}

/** The head is as high as a row and stays in sight. */
export function useWindow(count: number): RowWindow {
  const element = useRef<HTMLDivElement>(null);
  // Changed by every scroll event; a render is only due when other rows come into sight.
  const [space] = useState(() => new ScrollSpace());
  const [drawn, setDrawn] = useState<Drawn>({ first: 0, last: 0, y: 0, height: 0, isAtTop: true });

  const look = useCallback(() => {
    const [first, last] = space.rows(BEYOND);
    const next = { first, last, y: first * ROW_PX + space.shift, height: space.height, isAtTop: space.offset < ROW_PX };
    setDrawn((old) => {
      const isSame = old.first === next.first && old.last === next.last && old.y === next.y && old.height === next.height;
      return isSame && old.isAtTop === next.isAtTop ? old : next;
    });
  }, [space]);

  useLayoutEffect(() => {
    const scroller = element.current;
    if (!scroller) return;
    const measure = () => {
      space.resize(count, Math.max(0, scroller.clientHeight - ROW_PX));
      look();
    };
    measure();
    const sizes = new ResizeObserver(measure);
    sizes.observe(scroller);
    return () => sizes.disconnect();
  }, [element, space, count, look]);

  useEffect(() => {
    const scroller = element.current;
    if (!scroller) return;
    const onScroll = () => {
      space.scrolled(scroller.scrollTop);
      look();
    };
    const onRest = () => {
      const top = space.settled();
      if (Math.abs(top - space.top) < 1) return;
      space.top = top;
      scroller.scrollTop = top;
      look();
    };
    scroller.addEventListener("scroll", onScroll, { passive: true });
    scroller.addEventListener("scrollend", onRest);
    return () => {
      scroller.removeEventListener("scroll", onScroll);
      scroller.removeEventListener("scrollend", onRest);
    };
  }, [element, space, look]);

  const reveal = useCallback(
    (index: number) => {
      const top = space.reveal(index);
      if (element.current) element.current.scrollTop = top;
      look();
    },
    [element, space, look],
  );
  const toTop = useCallback(() => reveal(0), [reveal]);
  return { ...drawn, element, reveal, toTop, rowsInSight: space.rowsInSight };
}
