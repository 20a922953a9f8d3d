/** From bins that were brushed to a range that a filter can say. */

import type { Range } from "./choice";
import type { Bin } from "./useHistogram";

const tidy = (n: number) => Number(n.toPrecision(12));

const BINS = 40;

/** How many bins show a range. Whole numbers come in equal parts, or the bars would show the rounding. */
export function binsFor(range: [number, number] | null, isInteger: boolean): number {
  if (!range || !isInteger) return BINS;
  const numbers = range[1] - range[0] + 1;
  return numbers <= 1.5 * BINS ? Math.max(2, numbers) : Math.ceil(numbers / Math.ceil(numbers / BINS));
}

export function rangeOf(bins: Bin[], first: number, last: number, isInteger: boolean): Range | null {
  const from = bins[Math.min(first, last)];
  const to = bins[Math.max(first, last)];
  if (!from || !to) return null;
  const isLast = to === bins.at(-1);
  if (!isInteger) return { from: tidy(from.from), to: tidy(to.to), open: !isLast };
  // The edge between two bins belongs to the upper one; of whole numbers the one before it is the last.
  return { from: Math.ceil(from.from), to: isLast ? Math.floor(to.to) : Math.ceil(to.to) - 1, open: false };
}

/** Whether any of a bin is in the range. */
export function isIn(bin: Bin, range: Range | null, isLast: boolean): boolean {
  if (!range) return true;
  const { from, to, open } = range;
  const starts = from === null || (isLast ? bin.to >= from : bin.to > from);
  return starts && (to === null || (open ? bin.from < to : bin.from <= to));
}
