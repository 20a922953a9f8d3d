/** The server counts bytes of UTF-8, the browser units of UTF-16; a filter may hold any text. */

const encoder = new TextEncoder();

export function toBytes(text: string, at: number): number {
  return encoder.encode(text.slice(0, at)).length;
}

/** An offset inside a character is moved to its beginning. */
export function fromBytes(text: string, bytes: number): number {
  let seen = 0;
  let at = 0;
  for (const character of text) {
    seen += encoder.encode(character).length;
    if (seen > bytes) break;
    at += character.length;
  }
  return at;
}

/** What the text becomes when a suggestion is taken, and where the cursor stands then. */
export function taken(text: string, from: number, to: number, suggestion: { text: string; kind: string }): { text: string; at: number } {
  const start = text.slice(0, fromBytes(text, from));
  const rest = text.slice(fromBytes(text, to));
  // A call goes on right behind its parenthesis; everything else is a word of its own.
  const space = suggestion.text.endsWith("(") || rest.startsWith(" ") ? "" : " ";
  const head = start + suggestion.text + space;
  return { text: head + rest, at: head.length + (rest.startsWith(" ") && !suggestion.text.endsWith("(") ? 1 : 0) };
}
