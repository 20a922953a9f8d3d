/** Stays at the end of what grows, for whoever is there; whoever reads further up is left alone. */

import { useEffect, useLayoutEffect, useRef, type RefObject } from "react";

/** A line: who sees the last one half is at the end. */
const NEAR_PX = 24;

export function useEnd(scroller: RefObject<HTMLElement | null>, isOn: boolean, height: number) {
  const isAtEnd = useRef(true);
  useEffect(() => {
    const element = scroller.current;
    if (!element || !isOn) return;
    let last = element.scrollTop;
    const onScroll = () => {
      const isNear = element.scrollTop + element.clientHeight >= element.scrollHeight - NEAR_PX;
      // More may have come between our own scroll and the event of it: only a move up is somebody's wish.
      if (isNear) isAtEnd.current = true;
      else if (element.scrollTop < last) isAtEnd.current = false;
      last = element.scrollTop;
    };
    element.addEventListener("scroll", onScroll, { passive: true });
    return () => element.removeEventListener("scroll", onScroll);
  }, [scroller, isOn]);
  useLayoutEffect(() => {
    const element = scroller.current;
    if (element && isOn && isAtEnd.current) element.scrollTo({ top: element.scrollHeight });
  }, [scroller, isOn, height]);
}
