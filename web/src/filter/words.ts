/** The words of a filter, told apart for colours only: the server alone knows what they mean. */

export type WordKind = "text" | "number" | "keyword" | "name" | "other";

export interface Word {
  kind: WordKind;
  text: string;
}

const KEYWORDS = /^(and|or|not|in|is|null|between|contains|matches|like|startswith|endswith|true|false)$/i;
const WORD = /("(?:[^"\\]|\\[\s\S])*"?|'(?:[^'\\]|\\[\s\S])*'?)|((?<![\w.])\d[\w.]*)|([\p{L}_`][\p{L}\p{N}_.`]*)|([\s\S])/gu;

export function words(filter: string): Word[] {
  const found: Word[] = [];
  for (const [text, quoted, number, name] of filter.matchAll(WORD)) {
    const kind =
      quoted !== undefined ? "text" : number !== undefined ? "number" : name === undefined ? "other" : KEYWORDS.test(name) ? "keyword" : "name";
    const last = found.at(-1);
    if (kind === "other" && last?.kind === "other") last.text += text;
    else found.push({ kind, text });
  }
  return found;
}

/** The same words with the blamed part cut out of them. */
export function blamed(filter: string, from: number, to: number): (Word & { bad: boolean })[] {
  const parts: (Word & { bad: boolean })[] = [];
  let at = 0;
  for (const word of words(filter)) {
    const cuts = [0, from - at, to - at, word.text.length].map((cut) => Math.min(Math.max(cut, 0), word.text.length));
    for (let i = 0; i < 3; i += 1) {
      const text = word.text.slice(cuts[i], cuts[i + 1]);
      if (text !== "") parts.push({ kind: word.kind, text, bad: i === 1 });
    }
    at += word.text.length;
  }
  return parts;
}
