/** A diff as rows to look at: each is the text between two line ends that both sides share. */

import { align, type Pair, type Piece } from "./align";
import { compare, type Segment } from "./compare";

export interface DiffRow {
  /** Counts the rows that differ; null for one that is equal. */
  change: number | null;
  segments: Segment[];
}

export interface DiffBlock {
  channel: string;
  /** Index of the message on either side; null where there is none. */
  left: number | null;
  right: number | null;
  rows: DiffRow[];
}

export interface DiffResult {
  blocks: DiffBlock[];
  changes: number;
  /** Characters that both share before the first difference; of all if they are equal. */
  sameStart: number;
}

export function diffOf(left: Piece[], right: Piece[]): DiffResult {
  let changes = 0;
  let sameStart = 0;
  const blocks = align(left, right).map((pair): DiffBlock => {
    const segments = segmentsOf(pair);
    if (changes === 0) sameStart += startLength(segments);
    const rows = rowsOf(segments, () => changes++);
    return { channel: (pair.left ?? pair.right)?.channel ?? "", left: pair.left?.message ?? null, right: pair.right?.message ?? null, rows };
  });
  return { blocks, changes, sameStart };
}

function segmentsOf({ left, right }: Pair): Segment[] {
  if (left && right) return compare(left.text, right.text);
  return left ? [{ kind: "removed", text: left.text }] : [{ kind: "added", text: right?.text ?? "" }];
}

function startLength(segments: Segment[]): number {
  const [first] = segments;
  return first?.kind === "same" ? first.text.length : 0;
}

/** Equal lines in a row are one row: they are folded as one. */
export function rowsOf(segments: Segment[], number: () => number): DiffRow[] {
  const rows: DiffRow[] = [];
  let open: Segment[] = [];
  const close = () => {
    if (open.length === 0) return;
    const isChanged = open.some(({ kind }) => kind !== "same");
    const last = rows.at(-1);
    if (!isChanged && last?.change === null) last.segments.push(...open);
    else rows.push({ change: isChanged ? number() : null, segments: open });
    open = [];
  };
  for (const segment of segments) {
    if (segment.kind !== "same") {
      open.push(segment);
      continue;
    }
    // Whole lines that changed stand alone: the equal text after them is not theirs.
    if (endsLine(open, "added") && endsLine(open, "removed")) close();
    const first = segment.text.indexOf("\n") + 1;
    const last = segment.text.lastIndexOf("\n") + 1;
    // A line end that both share ends the row that is open; what is between the first and the last is equal.
    for (const [text, ends] of [
      [segment.text.slice(0, first), true],
      [segment.text.slice(first, last), true],
      [segment.text.slice(last), false],
    ] as const) {
      if (text !== "") open.push({ kind: "same", text });
      if (ends && text !== "") close();
    }
  }
  close();
  return rows;
}

/** Whether a side, without the other's segments, is at the beginning of a line. */
function endsLine(segments: Segment[], without: "added" | "removed"): boolean {
  const last = segments.findLast(({ kind }) => kind !== without);
  return last === undefined || last.text.endsWith("\n");
}
