/**
 * Where a stretch of a message is among its parts, and back. The one place that knows how ranges are counted: links,
 * comments and selections in characters of the message (its content first, then fields of reasoning, then calls);
 * hits, quotes and detections in characters of what the message says in one channel.
 */

import { characters, unitOf } from "@/text/characters";
import type { MarkKind, TextMark } from "@/text/segments";
import type { Message, Part } from "./parts";

/** A stretch of a message, in characters. */
export interface Span {
  message: number;
  start: number;
  end: number;
  channel?: string | null | undefined;
}

/** A span that stands out, and why. */
export interface Mark extends Span {
  kind: MarkKind;
  label?: string | undefined;
}

/** A stretch of a part, in UTF-16 units of its text. */
export interface Place {
  part: Part;
  from: number;
  to: number;
}

/** The stretches that a span covers, in the order of the message. Empty if the message is not so long. */
export function locate(messages: readonly Message[], span: Span): Place[] {
  const places: Place[] = [];
  for (const part of messages[span.message]?.parts ?? []) {
    const base = (span.channel ?? null) === null ? part.start : part.channel === span.channel ? part.voice : null;
    if (base === null) continue;
    const [start, end] = [span.start - base, span.end - base];
    // A span of no length is a point, and belongs to the part that it is in.
    const isOver = span.start === span.end ? start >= 0 && start < part.chars : start < part.chars && end > 0;
    if (!isOver) continue;
    const from = unitOf(part.text, Math.max(0, start));
    places.push({ part, from, to: unitOf(part.text, Math.max(0, end)) });
  }
  return places;
}

/** A stretch of a part as links and comments say it; null for what they cannot count. */
export function spanOf({ part, from, to }: Place): Span | null {
  if (part.start === null) return null;
  return { message: part.message, start: part.start + characters(part.text, from), end: part.start + characters(part.text, to) };
}

/** From one place to another, if both are of one message and in order; else as far as the first goes. */
export function spanBetween(first: Place, last: Place): Span | null {
  const start = spanOf(first);
  const end = spanOf(last);
  if (start === null) return null;
  const isOne = end !== null && end.message === start.message && end.end >= start.end;
  if (isOne) return { ...start, end: end.end };
  return spanOf({ ...first, to: first.part.text.length });
}

/** Marks by the number of the part that they are in. */
export function byPart(messages: readonly Message[], marks: readonly Mark[]): Map<number, TextMark[]> {
  const result = new Map<number, TextMark[]>();
  for (const mark of marks) {
    for (const { part, from, to } of locate(messages, mark)) {
      const list = result.get(part.index) ?? [];
      list.push({ from, to, kind: mark.kind, label: mark.label });
      result.set(part.index, list);
    }
  }
  return result;
}
