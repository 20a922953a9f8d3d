/** A stretch of text cut where a mark begins or ends and where a character has to be made visible. */

import { odds } from "./odd";

/** A stretch that stands out, in units of the text. */
export interface TextMark {
  from: number;
  to: number;
  kind: MarkKind;
  label?: string | undefined;
}

export type MarkKind = "found" | "now" | "link" | "hit" | "note" | "quote" | "detection";

export interface Segment {
  /** As it is shown. */
  text: string;
  /** Where it stands in the source, and how long it is there. */
  at: number;
  length: number;
  kinds: MarkKind[];
  label: string | undefined;
  /** For a character that could not be seen as it is. */
  odd: string | undefined;
}

export function segments(text: string, from: number, to: number, marks: readonly TextMark[]): Segment[] {
  const here = marks.filter((mark) => mark.from < to && mark.to > from);
  const odd = odds(text, from, to);
  const cuts = new Set([from, to]);
  for (const mark of here) cuts.add(Math.max(from, mark.from)).add(Math.min(to, mark.to));
  for (const one of odd) cuts.add(one.at).add(one.at + one.length);
  const sorted = [...cuts].sort((a, b) => a - b);
  const oddAt = new Map(odd.map((one) => [one.at, one]));
  const result: Segment[] = [];
  for (let i = 0; i + 1 < sorted.length; i++) {
    const at = sorted[i] ?? 0;
    const end = sorted[i + 1] ?? 0;
    const over = here.filter((mark) => mark.from <= at && mark.to >= end);
    const strange = oddAt.get(at);
    result.push({
      text: strange?.shown ?? text.slice(at, end),
      at,
      length: end - at,
      kinds: [...new Set(over.map((mark) => mark.kind))],
      label: over.map((mark) => mark.label).filter(Boolean).join("; ") || undefined,
      odd: strange?.title,
    });
  }
  return result;
}
