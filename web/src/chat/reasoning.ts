/** The signs around reasoning and channels: they say what a text is, and a heading says it better. */

const OPEN = /^\s*<(think|thinking|reasoning)>\s*/;
const CLOSE = /\s*<\/(?:think|thinking|reasoning)>\s*$/;
const HARMONY_OPEN = /^\s*(?:<\|start\|>\w*)?(?:<\|channel\|>[\w ]*)?<\|message\|>/;
const EMPTY_LINES = /^(?:[ \t]*\r?\n)+/;
const HARMONY_CLOSE = /<\|(?:end|return|call)\|>\s*$/;

export interface Signs {
  /** Units at the beginning and at the end. */
  lead: number;
  tail: number;
  /** Began and was never closed: the answer was cut, or the model forgot. */
  unclosed: boolean;
}

/** `mustClose` for reasoning that stands in the content; that of a field of its own has no signs. */
export function marksOf(text: string, mustClose: boolean): Signs {
  // Signs stand at the ends; a text of ten megabytes is not looked through for them.
  const head = text.slice(0, 200);
  const end = text.slice(-200);
  const isHarmony = head.includes("<|");
  const lead = (isHarmony ? HARMONY_OPEN : OPEN).exec(head)?.[0].length ?? EMPTY_LINES.exec(head)?.[0].length ?? 0;
  const close = HARMONY_CLOSE.exec(end) ?? (mustClose ? CLOSE.exec(end) : null);
  const tail = Math.min(close?.[0].length ?? 0, text.length - lead);
  return { lead, tail, unclosed: mustClose && close === null };
}
