/**
 * Where the hits of a search stand in a rollout, counted as the server counts: characters (Unicode scalar values) of
 * what a message says in one channel. A string of the browser counts UTF-16 units.
 */

import type { Condition } from "@/state/url";

export interface Piece {
  message: number;
  channel: string;
  text: string;
}

/** A stretch of a message, as the URL has it. */
export interface Place {
  message: number;
  channel: string;
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
  // Several pieces of one channel in one message count on from each other.
  let before = new Map<string, number>();
  let message = -1;
  for (const piece of pieces) {
    if (piece.message !== message) before = new Map();
    message = piece.message;
    const from = before.get(piece.channel) ?? 0;
    const found = wanted
      .filter(({ channels }) => channels.length === 0 || channels.includes(piece.channel))
      .flatMap(({ matcher }) => (matcher ? rangesIn(piece.text, matcher, from, PLACES_MAX - places.length) : []));
    found.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    places.push(...found.map((range) => ({ message, channel: piece.channel, range })));
    if (places.length >= PLACES_MAX) break;
    before.set(piece.channel, from + charCount(piece.text));
  }
  return places;
}

function rangesIn(text: string, matcher: RegExp, from: number, most: number): [number, number][] {
  const ranges: [number, number][] = [];
  // Counted on from the last one: a text of megabytes with thousands of hits is walked once.
  let units = 0;
  let chars = from;
  for (const match of text.matchAll(matcher)) {
    if (match[0] === "") continue;
    if (ranges.length >= most) break;
    const start = chars + charCount(text.slice(units, match.index));
    chars = start + charCount(match[0]);
    units = match.index + match[0].length;
    ranges.push([start, chars]);
  }
  return ranges;
}
