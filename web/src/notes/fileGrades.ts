/** Grades that stand in the row itself, as older viewers wrote them there, in the shape of ours. */

import { charCount, type Piece } from "@/hits/place";
import type { Note, Quote } from "./notes";

type Entry = Record<string, unknown>;

export function fileGrades(id: string, grades: unknown, pieces: Piece[]): Note[] {
  if (typeof grades !== "object" || grades === null) return [];
  return Object.entries(grades).flatMap(([metric, entries]: [string, unknown]) =>
    (Array.isArray(entries) ? (entries as unknown[]) : [entries]).flatMap((entry, n) => {
      const given: Entry = typeof entry === "object" && entry !== null ? (entry as Entry) : { score: entry };
      const score = given["grade"] ?? given["score"] ?? given["value"];
      if (typeof score !== "number" && typeof score !== "boolean") return [];
      const quotes = Array.isArray(given["quotes"]) ? (given["quotes"] as unknown[]) : [];
      const text = (...names: string[]) => names.map((name) => given[name]).find((value) => typeof value === "string") ?? "";
      const note: Note = {
        note: `file ${metric} ${n}`,
        id,
        kind: "grade",
        at: 0,
        metric,
        score,
        model: text("model") || "in the file",
        reasoning: text("explanation", "reasoning"),
        quotes: quotes.map((quote) => quoteIn(quote, pieces)).filter((quote) => quote !== null),
      };
      return [note];
    }),
  );
}

function quoteIn(quote: unknown, pieces: Piece[]): Quote | null {
  const text = typeof quote === "string" ? quote : (quote as { text?: unknown } | null)?.text;
  if (typeof text !== "string" || text === "") return null;
  const before = new Map<string, number>();
  for (const { message, channel, text: said } of pieces) {
    const voice = `${message} ${channel}`;
    const from = before.get(voice) ?? 0;
    const at = said.indexOf(text);
    if (at >= 0) {
      const start = from + charCount(said.slice(0, at));
      return { text, found: true, span: { message, channel, start, end: start + charCount(text) } };
    }
    before.set(voice, from + charCount(said));
  }
  return { text, found: false };
}
