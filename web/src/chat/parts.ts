/**
 * The messages of a rollout, cut into what is read apart: prose, reasoning, tool calls and their results.
 *
 * The server tells the text by channel (`pieces`), in the order in which it finds it in a message: fields of
 * reasoning, the content, tool calls. The same walk is made here, so that each piece also knows its call or its image.
 */

import { characters } from "@/text/characters";
import { marksOf } from "./reasoning";

export interface Piece {
  message: number;
  channel: string;
  text: string;
}

/** What the chat needs of a rollout; one from a server has it, and so has one from a file of its own. */
export interface Conversation {
  id: string;
  messages: readonly unknown[];
  pieces: readonly Piece[];
}

export type PartKind = "prose" | "reasoning" | "call" | "result" | "other" | "more";

export interface Part {
  /** Its number in the rollout. */
  index: number;
  message: number;
  kind: PartKind;
  channel: string | null;
  text: string;
  /** Characters of the message, and of its channel, that come before; null for what the server does not count. */
  start: number | null;
  voice: number | null;
  chars: number;
  /** Units at both ends that only mark what it is, such as `<think>`. */
  lead: number;
  tail: number;
  unclosed: boolean;
  /** Name of a call, and the id that its result names. */
  name: string | undefined;
  id: string | undefined;
  isError: boolean;
  /** What is known of something that has no text. */
  detail: string | undefined;
}

export interface Message {
  index: number;
  role: string;
  channel: string;
  isKnown: boolean;
  parts: Part[];
  chars: number;
}

type Fields = Record<string, unknown>;
const isFields = (value: unknown): value is Fields => typeof value === "object" && value !== null && !Array.isArray(value);
const text = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);

const CHANNELS: Record<string, string> = {
  system: "system",
  developer: "system",
  user: "user",
  human: "user",
  ...Object.fromEntries(["assistant", "gpt", "model", "ai", "bot"].map((role) => [role, "assistant"])),
  ...Object.fromEntries(["tool", "function", "ipython", "environment", "observation"].map((role) => [role, "tool_result"])),
};
const THOUGHTS = ["reasoning_content", "reasoning", "thinking"];
const KINDS: Record<string, PartKind> = { reasoning: "reasoning", tool_call: "call", tool_result: "result" };

/** Cuts one message; `order` 1 is its content, which is counted first because links count the content. */
class Cutter {
  readonly parts: (Part & { order: number })[] = [];
  private order = 0;
  private next = 0;

  constructor(
    readonly index: number,
    readonly channel: string,
    readonly pieces: readonly Piece[],
  ) {}

  cut(message: Fields) {
    this.order = 2;
    for (const name of THOUGHTS) {
      const thought = text(message[name]);
      if (thought !== undefined) this.put(this.take(thought, "reasoning"));
    }
    this.order = 1;
    this.content(message["content"], this.channel, { id: text(message["tool_call_id"]), name: text(message["name"]), isError: message["is_error"] === true || message["status"] === "error" });
    this.order = 3;
    const calls = message["tool_calls"];
    for (const call of Array.isArray(calls) ? calls : []) this.call(call);
    this.order = 4;
    this.more(message);
  }

  private take(otherwise: string, channel: string): Piece {
    return this.pieces[this.next++] ?? { message: this.index, channel, text: otherwise };
  }

  private put(piece: { channel: string | null; text: string }, more: Partial<Part> = {}) {
    const kind = more.kind ?? KINDS[piece.channel ?? ""] ?? "prose";
    this.parts.push({
      index: 0,
      message: this.index,
      kind,
      channel: piece.channel,
      text: piece.text,
      start: null,
      voice: null,
      chars: characters(piece.text),
      ...(kind === "reasoning" || piece.channel === "assistant" ? marksOf(piece.text, kind === "reasoning" && this.order === 1) : { lead: 0, tail: 0, unclosed: false }),
      name: undefined,
      id: undefined,
      isError: false,
      detail: undefined,
      ...more,
      order: this.order,
    });
  }

  private content(content: unknown, channel: string, more: Partial<Part>) {
    if (content === null || content === undefined) return;
    if (typeof content === "string") this.text(content, channel, more);
    else if (Array.isArray(content)) for (const part of content) this.part(part, channel, more);
    else if (isFields(content)) this.part(content, channel, more);
    else this.put(this.take(JSON.stringify(content), channel), more);
  }

  /** An answer may be several pieces, for it thinks aloud; together they are its text. */
  private text(content: string, channel: string, more: Partial<Part>) {
    if (content === "") {
      if (this.pieces[this.next]?.text === "") this.next += 1;
      return;
    }
    const ofKind = channel === "tool_result" ? more : {};
    for (let left = content.length; left > 0; ) {
      const piece = this.take(content.slice(content.length - left), channel);
      this.put(piece, ofKind);
      left -= Math.max(1, piece.text.length);
    }
  }

  private part(part: unknown, channel: string, more: Partial<Part>) {
    if (typeof part === "string") {
      this.text(part, channel, more);
      return;
    }
    const fields = isFields(part) ? part : {};
    const kind = text(fields["type"]) ?? "text";
    if (kind === "thinking" || kind === "reasoning") {
      const thought = text(fields["thinking"]) ?? text(fields["reasoning"]) ?? text(fields["text"]);
      if (thought !== undefined) this.put(this.take(thought, "reasoning"), { lead: 0, tail: 0, unclosed: false });
    } else if (kind === "tool_use") {
      this.call(fields);
    } else if (kind === "tool_result") {
      const result = { kind: "result" as const, id: text(fields["tool_use_id"]), isError: fields["is_error"] === true };
      if ("content" in fields) this.content(fields["content"], "tool_result", result);
      else this.put(this.take("", "tool_result"), result);
    } else {
      const said = text(fields["text"]);
      if (said !== undefined) this.text(said, channel, more);
      else this.put(this.take(`[${kind}]`, channel), { kind: "other", detail: detailOf(kind, fields, part) });
    }
  }

  private call(call: unknown) {
    const fields = isFields(call) ? call : {};
    const inner = isFields(fields["function"]) ? fields["function"] : fields;
    const name = text(inner["name"]) ?? "?";
    const given = inner["arguments"] ?? inner["input"] ?? "";
    const written = typeof given === "string" ? given : JSON.stringify(given);
    this.put(this.take(`${name} ${written}`, "tool_call"), { kind: "call", name, id: text(fields["id"]) });
  }

  /** Whatever else the message has. */
  private more(message: Fields) {
    const told = new Set([...(this.channel === "tool_result" ? ["name"] : []), "role", "content", "tool_calls", "tool_call_id", ...THOUGHTS.filter((name) => typeof message[name] === "string")]);
    const rest = Object.entries(message).filter(
      ([name, value]) => !told.has(name) && value !== null && value !== message["content"] && value !== message["role"],
    );
    if (rest.length > 0) this.put({ channel: null, text: JSON.stringify(Object.fromEntries(rest)) }, { kind: "more", detail: rest.map(([name]) => name).join(", ") });
  }
}

function detailOf(kind: string, fields: Fields, part: unknown): string {
  const image = fields["image_url"] ?? fields["image"] ?? fields["source"] ?? fields["url"];
  const url = text(image) ?? (isFields(image) ? (text(image["url"]) ?? text(image["data"])) : undefined);
  if (!kind.includes("image")) return JSON.stringify(part);
  if (url === undefined) return "image, not loaded";
  return `image: ${url.length > 200 ? `${url.slice(0, 120)}… (${url.length} characters)` : url}, not loaded`;
}

/** Messages that were cut before: one that is still there when a conversation goes on is not cut, or drawn, again. */
const known = new WeakMap<object, { first: number; message: Message }>();

/** All messages with their parts, and where each part stands in what links and hits count. */
export function messagesOf(conversation: Conversation): Message[] {
  const byMessage = new Map<number, Piece[]>();
  for (const piece of conversation.pieces) {
    const list = byMessage.get(piece.message);
    if (list) list.push(piece);
    else byMessage.set(piece.message, [piece]);
  }
  let number = 0;
  return conversation.messages.map((said, index) => {
    const canKeep = isFields(said) && conversation.pieces.length === 0;
    const kept = canKeep ? known.get(said) : undefined;
    const first = number;
    if (kept && kept.first === first && kept.message.index === index) {
      number += kept.message.parts.length;
      return kept.message;
    }
    const fields = isFields(said) ? said : { role: "user", content: said };
    const role = text(fields["role"]) ?? "?";
    const channel = CHANNELS[role] ?? "user";
    const cutter = new Cutter(index, channel, byMessage.get(index) ?? []);
    cutter.cut(fields);
    const voices = new Map<string, number>();
    for (const [at, part] of cutter.parts.entries()) {
      part.index = number++;
      // A channel of Harmony may end where the next begins.
      if (cutter.parts[at + 1]?.order === part.order) part.unclosed = false;
      if (part.channel === null) continue;
      part.voice = voices.get(part.channel) ?? 0;
      voices.set(part.channel, part.voice + part.chars);
    }
    let start = 0;
    for (const part of cutter.parts.filter((one) => one.channel !== null).sort((a, b) => a.order - b.order)) {
      part.start = start;
      start += part.chars;
    }
    const message = { index, role, channel, isKnown: role in CHANNELS, parts: cutter.parts, chars: start };
    if (canKeep) known.set(said, { first, message });
    return message;
  });
}
