/** Snippets of hits: the server counts bytes, a string of the browser counts UTF-16 units. */

/** UTF-16 units before a byte of the text's UTF-8. A byte inside of a character counts as its beginning. */
export function unitsBefore(text: string, byte: number): number {
  let bytes = 0;
  let units = 0;
  for (const char of text) {
    const code = char.codePointAt(0) ?? 0;
    bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    if (bytes > byte) break;
    units += char.length;
  }
  return units;
}

export interface Marked {
  before: string;
  hit: string;
  after: string;
}

/** More than this before a hit would push it out of a narrow column. */
const BEFORE_UNITS = 32;

/** A snippet on one line, cut so that its hit is in sight. */
export function marked(snippet: string, at: readonly number[]): Marked {
  const start = unitsBefore(snippet, at[0] ?? 0);
  const end = unitsBefore(snippet, at[1] ?? 0);
  const before = oneLine(snippet.slice(0, start));
  const cut = before.length > BEFORE_UNITS ? `…${wholeFrom(before, before.length - BEFORE_UNITS)}` : before;
  return { before: cut, hit: oneLine(snippet.slice(start, end)), after: oneLine(snippet.slice(end)) };
}

/** From a unit on, without half a character at the start. */
function wholeFrom(text: string, unit: number): string {
  const code = text.charCodeAt(unit);
  return text.slice(code >= 0xdc00 && code <= 0xdfff ? unit + 1 : unit);
}

/** Line ends as a sign, and nothing that could turn the line around or hide in it. */
function oneLine(text: string): string {
  return text
    .replaceAll(/\r?\n|\r|\u2028|\u2029/g, "⏎")
    .replaceAll(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g, "·")
    .replaceAll(/[\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "·");
}
