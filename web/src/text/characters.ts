/**
 * Characters and UTF-16 units. The server counts characters (Unicode scalar values), a browser counts units: an emoji
 * is one of the former and two of the latter.
 */

const WIDE = /[\ud800-\udfff]/;

function isPair(text: string, at: number): boolean {
  const high = text.charCodeAt(at);
  if (high < 0xd800 || high > 0xdbff) return false;
  const low = text.charCodeAt(at + 1);
  return low >= 0xdc00 && low <= 0xdfff;
}

/** How many characters a text has. */
export function characters(text: string, to = text.length): number {
  if (!WIDE.test(text)) return Math.min(to, text.length);
  let n = 0;
  for (let at = 0; at < to && at < text.length; n++) at += isPair(text, at) ? 2 : 1;
  return n;
}

/** Where that character begins, in units. What lies behind the text is its end. */
export function unitOf(text: string, character: number): number {
  if (!WIDE.test(text)) return Math.min(character, text.length);
  let at = 0;
  for (let n = 0; n < character && at < text.length; n++) at += isPair(text, at) ? 2 : 1;
  return at;
}
