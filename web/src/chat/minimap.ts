/** The whole chat in a few hundred lines of pixels: whose text is where, and where the marks are. */

import type { MarkKind, TextMark } from "@/text/segments";
import type { Row } from "./rows";

export const BANDS = 240;

export interface Band {
  from: number;
  to: number;
  channel: string;
}

export interface Tick {
  band: number;
  kind: MarkKind;
}

interface Measured {
  start: number;
  size: number;
}

/** Stretches of one channel each, in bands from the top. A row that is smaller than a band may lose to its neighbour. */
export function bandsOf(rows: readonly Row[], measured: readonly Measured[], height: number): Band[] {
  const owners: string[] = [];
  const filled: number[] = [];
  const perBand = height / BANDS;
  rows.forEach((row, i) => {
    const item = measured[i];
    if (!item) return;
    const channel = row.kind === "text" || row.kind === "part" ? (row.part.channel ?? row.message.channel) : row.message.channel;
    const last = Math.min(BANDS - 1, Math.floor((item.start + item.size - 1) / perBand));
    for (let band = Math.floor(item.start / perBand); band <= last; band++) {
      const share = Math.min(item.start + item.size, (band + 1) * perBand) - Math.max(item.start, band * perBand);
      if (share <= (filled[band] ?? 0)) continue;
      filled[band] = share;
      owners[band] = channel;
    }
  });
  const bands: Band[] = [];
  owners.forEach((channel, band) => {
    const before = bands.at(-1);
    if (before?.channel === channel && before.to === band) before.to = band + 1;
    else bands.push({ from: band, to: band + 1, channel });
  });
  return bands;
}

/** One tick for each band and kind. A mark in a folded part stands where its heading is. */
export function ticksOf(rows: readonly Row[], marks: ReadonlyMap<number, readonly TextMark[]>, measured: readonly Measured[], height: number): Tick[] {
  if (marks.size === 0) return [];
  const ticks = new Map<string, Tick>();
  rows.forEach((row, i) => {
    const item = measured[i];
    if (!item || row.kind === "head" || row.kind === "empty") return;
    if (row.kind === "part" && row.isOpen) return;
    const [from, to] = row.kind === "text" ? [row.chunk.from, row.chunk.to] : [0, row.part.text.length];
    for (const mark of marks.get(row.part.index) ?? []) {
      if (mark.from >= to || mark.to <= from) continue;
      const within = to > from ? (Math.max(mark.from, from) - from) / (to - from) : 0;
      const band = Math.min(BANDS - 1, Math.floor(((item.start + within * item.size) / height) * BANDS));
      ticks.set(`${band} ${mark.kind}`, { band, kind: mark.kind });
    }
  });
  return [...ticks.values()];
}
