/** Links of the older viewer: `?file=run.jsonl&rollout=42&message=3&highlight=some+text`. They were shared, and go on working. */

export interface OldLink {
  files: string[];
  /** The number that the writer gave it, which need not be the only one. */
  rollout: number | null;
  message: number | null;
  highlight: string | null;
}

const whole = (text: string | null) => (text !== null && /^\d{1,15}$/.test(text) ? Number(text) : null);

/** Null for what is not one. */
export function parseOldLink(search: string): OldLink | null {
  const params = new URLSearchParams(search);
  const files = params.getAll("file").filter(Boolean);
  if (files.length === 0 || params.has("place")) return null;
  const highlight = params.get("highlight");
  return { files, rollout: whole(params.get("rollout")), message: whole(params.get("message")), highlight: highlight === "" ? null : highlight };
}

/** What a message says, as ranges count it. */
export function contentOf(message: unknown): string {
  const content = (message as { content?: unknown } | null | undefined)?.content;
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((part: unknown) => (typeof part === "string" ? part : textOf(part))).join("");
}

function textOf(part: unknown): string {
  const text = (part as { text?: unknown } | null)?.text;
  return typeof text === "string" ? text : "";
}

/** The message and the characters of a text: in the message that the link names, or else in the first that has it. */
export function locate(messages: unknown[], message: number | null, text: string): { message: number; range: [number, number] } | null {
  const order = messages.map((_, i) => i);
  if (message !== null) order.unshift(message);
  for (const i of order) {
    const content = contentOf(messages[i]);
    const at = content.indexOf(text);
    // Characters, not units: what the server counts.
    const start = Array.from(content.slice(0, Math.max(at, 0))).length;
    if (at >= 0) return { message: i, range: [start, start + Array.from(text).length] };
  }
  return null;
}
