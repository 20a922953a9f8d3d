/**
 * Characters that a reader cannot see, or that change how others are seen. A rollout is written by a model that may
 * be cheating, so they are shown for what they are.
 */

const NAMES: Record<number, string> = {
  0x00ad: "soft hyphen",
  0x061c: "Arabic letter mark",
  0x200b: "zero-width space",
  0x200c: "zero-width non-joiner",
  0x200d: "zero-width joiner",
  0x200e: "left-to-right mark",
  0x200f: "right-to-left mark",
  0x2028: "line separator",
  0x2029: "paragraph separator",
  0x202a: "left-to-right embedding",
  0x202b: "right-to-left embedding",
  0x202c: "end of direction",
  0x202d: "left-to-right override",
  0x202e: "right-to-left override",
  0x2060: "word joiner",
  0x2066: "left-to-right isolate",
  0x2067: "right-to-left isolate",
  0x2068: "first-strong isolate",
  0x2069: "end of isolate",
  0xfeff: "byte order mark",
};

// Tabs and line ends are layout. Of a line's end as Windows writes it the first half is left unseen.
const ODD =
  /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|\r(?!\n)|\p{Cs}|[\u{e0000}-\u{e007f}]/gu;

/** Joiners belong to many emoji, as do tags to some flags. */
const IN_EMOJI = /(?:\p{Extended_Pictographic}|\p{Emoji_Modifier}|\ufe0f|[\u{e0020}-\u{e007f}])$/u;

export interface Odd {
  at: number;
  /** In units. */
  length: number;
  /** What stands there for it. */
  shown: string;
  title: string;
}

function shown(code: number): string {
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  if (code === 0x7f) return "\u2421";
  return hex(code);
}

function hex(code: number): string {
  return `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
}

/** All that are in a stretch of a text, in order. */
export function odds(text: string, from = 0, to = text.length): Odd[] {
  const found: Odd[] = [];
  for (const match of text.slice(from, to).matchAll(ODD)) {
    const code = match[0].codePointAt(0) ?? 0;
    const at = from + match.index;
    const mayJoin = code === 0x200d || code >= 0xe0020;
    if (mayJoin && IN_EMOJI.test(text.slice(Math.max(0, at - 2), at))) continue;
    const name = NAMES[code] ?? (code >= 0xe0000 ? "invisible tag" : code >= 0xd800 && code < 0xe000 ? "half a character" : "control character");
    found.push({ at, length: match[0].length, shown: shown(code), title: `${name} (${hex(code)})` });
  }
  return found;
}
