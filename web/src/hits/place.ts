/**
 * Where something stands in a rollout.
 *
 * The server counts characters (Unicode scalar values) of what one channel says in a message. A link counts those of
 * the whole message: its pieces in order, which for plain messages is the content. A string of the browser counts
 * UTF-16 units. This is where they meet.
 */

import type { Condition } from "@/state/url";

export interface Piece {
  message: number;
  channel: string;
  text: string;
}

/** A stretch as the server tells it. */
export interface Span {
  message: number;
  /** Null where it counts in the whole message. */
  channel: string | null;
  start: number;
  end: number;
}

/** A stretch as a link tells it. */
export interface Place {
  message: number;
  range: [number, number];
}

/** Characters of a text, which are fewer than its UTF-16 units where there is emoji in it. */
export function charCount(text: string): number {
  let n = text.length;
  for (let at = 0; at + 1 < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit < 0xd800 || unit > 0xdbff) continue;
    const next = text.charCodeAt(at + 1);
    if (next < 0xdc00 || next > 0xdfff) continue;
    n -= 1;
    at += 1;
  }
  return n;
}

/** Where a stretch of a channel stands in its message. */
export function placeOf(pieces: Piece[], span: Span): Place {
  const { message, channel, start, end } = span;
  if (channel === null) return { message, range: [start, end] };
  let inMessage = 0;
  let inChannel = 0;
  for (const piece of pieces) {
    if (piece.message !== message) continue;
    const length = charCount(piece.text);
    if (piece.channel === channel) {
      if (start < inChannel + length || (start === end && start === inChannel + length)) {
        const shift = inMessage - inChannel;
        return { message, range: [start + shift, end + shift] };
      }
      inChannel += length;
    }
    inMessage += length;
  }
  return { message, range: [start, end] };
}

/** The text of a stretch of a message. */
export function textAt(pieces: Piece[], { message, range }: Place): string {
  const whole = pieces.filter((piece) => piece.message === message).map(({ text }) => text).join("");
  return Array.from(whole).slice(range[0], range[1]).join("");
}

/** A pattern of the server as one of the browser, which knows fewer; null where it does not know this one. */
export function matcherOf({ text, regex, case: hasCase }: Pick<Condition, "text" | "regex" | "case">): RegExp | null {
  // Browsers read `[[:alpha:]]` as something else, and silently.
  if (regex && text.includes("[:")) return null;
  let source = regex ? text : text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
  let flags = hasCase ? "gu" : "giu";
  const inline = regex ? /^\(\?([ims]+)\)/.exec(source) : null;
  if (inline) {
    source = source.slice(inline[0].length);
    for (const flag of inline[1] ?? "") if (!flags.includes(flag)) flags += flag;
  }
  if (regex) source = source.replaceAll("(?P<", "(?<").replaceAll("\\A", "^").replaceAll("\\z", "$");
  try {
    return new RegExp(source, flags);
  } catch {
    return null;
  }
}

/** More marks than these help nobody, and a pattern such as `.` would have millions. */
const PLACES_MAX = 10_000;

/** All places of a rollout that a search is about, in reading order. */
export function placesIn(pieces: Piece[], conditions: Condition[]): Place[] {
  const wanted = conditions
    .filter(({ kind }) => kind !== "none")
    .map((condition) => ({ matcher: matcherOf(condition), channels: condition.channels }));
  const places: Place[] = [];
  let message = -1;
  let before = 0;
  for (const piece of pieces) {
    if (piece.message !== message) {
      message = piece.message;
      before = 0;
    }
    for (const { matcher, channels } of wanted) {
      if (!matcher || (channels.length > 0 && !channels.includes(piece.channel))) continue;
      // Counted on from the last one: a text of megabytes with thousands of hits is walked once.
      let units = 0;
      let chars = before;
      for (const match of piece.text.matchAll(matcher)) {
        if (match[0] === "") continue;
        chars += charCount(piece.text.slice(units, match.index));
        const end = chars + charCount(match[0]);
        places.push({ message, range: [chars, end] });
        units = match.index + match[0].length;
        chars = end;
        if (places.length >= PLACES_MAX) return places.sort(inOrder);
      }
    }
    before += charCount(piece.text);
  }
  return places.sort(inOrder);
}

export function inOrder(a: Place, b: Place): number {
  return a.message - b.message || a.range[0] - b.range[0] || a.range[1] - b.range[1];
}
