/** The chat as a list of rows, each cheap to draw: what is folded has none, and a long text has many. */

import { chunks, markdownChunks, type Chunk } from "./chunks";
import type { Pairs } from "./pairs";
import type { Message, Part } from "./parts";

export type Drawn = "plain" | "mono" | "markdown" | "json" | "terminal";

export type Row =
  | { kind: "head"; key: string; message: Message; isOpen: boolean; inside: boolean }
  | { kind: "part"; key: string; message: Message; part: Part; isOpen: boolean; inside: boolean }
  | { kind: "text"; key: string; message: Message; part: Part; chunk: Chunk; drawn: Drawn; isLast: boolean; inside: boolean }
  | { kind: "empty"; key: string; message: Message; inside: boolean };

export interface How {
  raw: boolean;
  isOpen: (what: Message | Part) => boolean;
}

/** Longer ones are shown as they are: drawing them as Markdown or a tree would take longer than reading the first page. */
export const MARKDOWN_TEXT_MAX = 200_000;
const JSON_MAX = 40_000;
const TERMINAL_MAX = 1_000_000;

export function rowsOf(messages: readonly Message[], pairs: Pairs, how: How): Row[] {
  const rows: Row[] = [];
  const shown = new Set<number>();
  const show = (message: Message, inside: boolean) => {
    if (shown.has(message.index)) return;
    shown.add(message.index);
    const isOpen = how.isOpen(message);
    rows.push({ kind: "head", key: `m${message.index}`, message, isOpen, inside });
    if (isOpen && message.parts.length === 0) rows.push({ kind: "empty", key: `e${message.index}`, message, inside });
    for (const part of message.parts) {
      if (isOpen) partRows(rows, message, part, inside, how);
      // A result that is a message of its own stands under its call, also where several were called at once.
      const result = pairs.resultOf.get(part.index);
      const answer = result && messages[result.message];
      if (isOpen && answer && answer.index > message.index && answer.channel === "tool_result") show(answer, true);
    }
  };
  for (const message of messages) {
    // Under a message that is folded they would be out of sight for good.
    show(message, false);
  }
  return rows;
}

function partRows(rows: Row[], message: Message, part: Part, inside: boolean, how: How) {
  const hasHead = part.kind !== "prose" && !(part.kind === "result" && message.channel === "tool_result");
  const isOpen = !hasHead || how.isOpen(part);
  if (hasHead) rows.push({ kind: "part", key: `p${part.index}`, message, part, isOpen, inside });
  if (!isOpen || part.kind === "other") return;
  const [from, to] = how.raw ? [0, part.text.length] : [part.lead, part.text.length - part.tail];
  const begin = part.kind === "call" ? Math.min(to, (part.name?.length ?? 0) + 1) : from;
  const { drawn, list } = stretches(part, begin, to, how.raw);
  list.forEach((chunk, i) => {
    rows.push({ kind: "text", key: `t${part.index}.${chunk.from}`, message, part, chunk, drawn, isLast: i === list.length - 1, inside });
  });
}

function stretches(part: Part, from: number, to: number, raw: boolean): { drawn: Drawn; list: Chunk[] } {
  const whole = [{ from, to }];
  if (from >= to) return { drawn: "plain", list: [] };
  const isCode = part.kind === "call" || part.kind === "result" || part.kind === "more";
  if (raw) return { drawn: isCode ? "mono" : "plain", list: chunks(part.text, from, to) };
  if (isCode) {
    if (to - from <= JSON_MAX && looksLikeJson(part.text, from, to)) return { drawn: "json", list: whole };
    const isTerminal = to - from <= TERMINAL_MAX && part.text.includes("\u001b[");
    return { drawn: isTerminal ? "terminal" : "mono", list: chunks(part.text, from, to) };
  }
  const list = to - from <= MARKDOWN_TEXT_MAX ? markdownChunks(part.text, from, to) : null;
  return list ? { drawn: "markdown", list } : { drawn: "plain", list: chunks(part.text, from, to) };
}

function looksLikeJson(text: string, from: number, to: number): boolean {
  const ends = text.slice(from, from + 20).trimStart().charAt(0) + text.slice(Math.max(from, to - 20), to).trimEnd().slice(-1);
  return ends === "{}" || ends === "[]";
}

/** Before a row is drawn, how high it may be. */
export function estimate(row: Row): number {
  if (row.kind === "head") return row.isOpen ? 36 : 32;
  if (row.kind !== "text") return 28;
  const units = row.chunk.to - row.chunk.from;
  let lines = 1;
  for (let at = row.part.text.indexOf("\n", row.chunk.from); at >= 0 && at < row.chunk.to; at = row.part.text.indexOf("\n", at + 1)) lines++;
  const perLine = row.drawn === "plain" || row.drawn === "markdown" ? 24 : 20;
  return Math.max(lines, Math.ceil(units / 75)) * perLine;
}

/** The row in which a place is, or the closest before. */
export function rowAt(rows: readonly Row[], part: Part, at: number): number {
  let best = -1;
  for (const [index, row] of rows.entries()) {
    if (row.kind === "head" && row.message.index === part.message) best = index;
    if (row.kind === "part" && row.part === part) best = index;
    if (row.kind === "text" && row.part === part && row.chunk.from <= at) best = index;
  }
  return best;
}
