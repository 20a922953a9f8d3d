/**
 * Brings something into sight and keeps it there until the page stands still. Heights are only known once rows are
 * drawn, and Markdown is drawn a little later than text: one scroll alone would end somewhere near.
 */

const FRAMES_STILL = 20;
const HELD_MS = 2000;
const MOVES = ["wheel", "touchstart", "pointerdown", "keydown"] as const;

interface Held {
  scroller: HTMLElement;
  /** The element, if it is drawn. */
  element: () => HTMLElement | null | undefined;
  /** Scrolls to about where it is, so that it will be drawn. */
  approach: () => void;
  block: "center" | "start";
}

/** Gives up as soon as the reader moves. Returns how to stop it earlier. */
export function hold({ scroller, element, approach, block }: Held): () => void {
  const until = performance.now() + HELD_MS;
  let frame = 0;
  let still = 0;
  const stop = () => {
    cancelAnimationFrame(frame);
    for (const move of MOVES) window.removeEventListener(move, stop, true);
  };
  const look = () => {
    const found = element();
    const before = scroller.scrollTop;
    if (found) found.scrollIntoView({ block });
    else approach();
    still = found && Math.abs(scroller.scrollTop - before) < 2 ? still + 1 : 0;
    if (still < FRAMES_STILL && performance.now() < until) frame = requestAnimationFrame(look);
    else stop();
  };
  for (const move of MOVES) window.addEventListener(move, stop, { capture: true, passive: true });
  approach();
  frame = requestAnimationFrame(look);
  return stop;
}
