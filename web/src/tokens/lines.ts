/** Tokens in lines of a monospace grid: how many fit is counted, so that only the lines in sight need to be drawn. */

export interface Line {
  from: number;
  /** One after its last. */
  to: number;
  isPrompt: boolean;
}

interface Grid {
  length: number;
  promptLen: number;
  columns: number;
  /** Cells of a token. */
  width: (at: number) => number;
  endsLine: (at: number) => boolean;
}

export function linesOf({ length, promptLen, columns, width, endsLine }: Grid): Line[] {
  const lines: Line[] = [];
  let from = 0;
  let used = 0;
  const close = (to: number) => {
    if (to > from) lines.push({ from, to, isPrompt: from < promptLen });
    from = to;
    used = 0;
  };
  for (let at = 0; at < length; at++) {
    // The response begins a line of its own: its edge has another colour.
    if (at === promptLen) close(at);
    const wide = Math.min(width(at), columns);
    if (used + wide > columns) close(at);
    used += wide;
    if (endsLine(at)) close(at + 1);
  }
  close(length);
  return lines;
}

/** The line that a token is in. */
export function lineOf(lines: Line[], at: number): number {
  let low = 0;
  let high = lines.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((lines[middle]?.from ?? 0) <= at) low = middle;
    else high = middle - 1;
  }
  return low;
}
