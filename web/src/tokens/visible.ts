/** The text of a token with everything in it that could be seen. */

const PICTURES: Record<string, string> = { "\n": "⏎", "\t": "⇥", "\r": "\\r", "\u00a0": "⍽" };

// What has no shape of its own, or changes the shape of what follows: controls, zero-width and bidi characters.
const HIDDEN = /[\p{Cc}\u00a0\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\u{e0000}-\u{e0fff}]|[\ud800-\udfff](?![\udc00-\udfff])/gu;

function picture(character: string): string {
  const known = PICTURES[character];
  if (known !== undefined) return known;
  const code = character.codePointAt(0) ?? 0;
  // Fonts often lack the pictures that Unicode has for controls.
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

export function visible(text: string): string {
  return text === "" ? "∅" : text.replace(HIDDEN, picture);
}

/** The same for running text, whose lines and tabs are shown as what they are. */
export function visibleText(text: string): string {
  return text.replace(HIDDEN, (character) => (character === "\n" || character === "\t" ? character : picture(character)));
}

// Far East letters and emoji take two cells of a monospace grid.
const WIDE = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6]|[\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;

/** Cells that a text takes in the grid. */
export function cells(text: string): number {
  let n = 0;
  for (const character of text) n += WIDE.test(character) ? 2 : 1;
  return n;
}
