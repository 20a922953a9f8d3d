/** Long texts in stretches that are each quickly drawn: only those in sight ever are. */

export interface Chunk {
  from: number;
  to: number;
}

const UNITS = 3000;
const LINES = 40;

/** Cuts at line ends; a line that is longer than a stretch is cut where it may be. */
export function chunks(text: string, from: number, to: number): Chunk[] {
  const result: Chunk[] = [];
  let start = from;
  while (start < to) {
    let end = start;
    for (let lines = 0; end < to && lines < LINES; lines++) {
      const newline = text.indexOf("\n", end);
      const next = newline < 0 || newline >= to ? to : newline + 1;
      if (next - start > UNITS) {
        if (end === start) end = cutLine(text, start, Math.min(to, start + UNITS));
        break;
      }
      end = next;
    }
    result.push({ from: start, to: end });
    start = end;
  }
  return result;
}

/** Not within a pair: half a character is none. */
function cutLine(text: string, start: number, end: number): number {
  const low = text.charCodeAt(end);
  const splits = low >= 0xdc00 && low <= 0xdfff && end - 1 > start;
  return splits ? end - 1 : end;
}

/** Above this a piece of Markdown costs more than a frame. */
const MARKDOWN_UNITS = 6000;
const MARKDOWN_MAX = 24_000;

/**
 * Cuts Markdown between its blocks, never within a fence. Null where it does not come apart: what has no empty line in
 * 24,000 characters is data, and some of it is written to be slow.
 */
export function markdownChunks(text: string, from: number, to: number): Chunk[] | null {
  const result: Chunk[] = [];
  let start = from;
  let fence: string | null = null;
  let at = from;
  while (at < to) {
    const newline = text.indexOf("\n", at);
    const end = newline < 0 || newline >= to ? to : newline + 1;
    const line = text.slice(at, Math.min(end, at + 100));
    const sign = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1];
    if (fence === null && sign !== undefined) fence = sign;
    else if (fence !== null && sign?.startsWith(fence) === true) fence = null;
    const isEmpty = line.trim() === "" && end - at < 100;
    // An indented line after an empty one still belongs to the list before.
    if (fence === null && isEmpty && end - start > MARKDOWN_UNITS && !/^[ \t]/.test(text.slice(end, end + 1))) {
      result.push({ from: start, to: end });
      start = end;
    }
    if (end - start > MARKDOWN_MAX) return null;
    at = end;
  }
  if (start < to) result.push({ from: start, to });
  return result;
}
