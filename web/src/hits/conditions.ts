/** Conditions of a text search: how they are called, and what the server is asked with. */

import { ApiError } from "@/api/client";
import type { Condition } from "@/state/url";

export const CHANNELS = {
  system: "System",
  user: "User",
  assistant: "Assistant",
  reasoning: "Reasoning",
  tool_call: "Tool call",
  tool_result: "Tool result",
} as const;

export const KINDS: Record<Condition["kind"], string> = { all: "and", any: "or", none: "not" };

export const NEW_CONDITION: Condition = { kind: "all", text: "", regex: false, case: false, channels: [] };

export function channelName(channel: string): string {
  return (CHANNELS as Record<string, string>)[channel] ?? channel;
}

/** The body of a search. */
export function bodyOf(conditions: Condition[], filter: string) {
  const ofKind = (kind: Condition["kind"]) =>
    conditions
      .filter((condition) => condition.kind === kind)
      .map(({ text, regex, case: hasCase, channels }) => ({ text, regex, case: hasCase, channels }));
  return { all: ofKind("all"), any: ofKind("any"), none: ofKind("none"), filter };
}

/** What is wrong with conditions before anybody is asked. */
export function mistakeIn(conditions: Condition[]): string | null {
  if (conditions.length > 0 && conditions.every(({ kind }) => kind === "none")) {
    return "Only “not” conditions: add one for what should be there.";
  }
  return null;
}

/** The condition that an error is about, by its number; null where it is about none. */
export function blamed(error: Error | null, conditions: Condition[]): number | null {
  if (!(error instanceof ApiError) || error.code !== "bad_regex") return null;
  // The server quotes the pattern at the start of its sentence.
  const quoted = conditions.findIndex(({ regex, text }) => regex && error.message.startsWith(JSON.stringify(text)));
  const first = conditions.findIndex(({ regex }) => regex);
  return quoted >= 0 ? quoted : first >= 0 ? first : null;
}

/** The sentence of a regex error without the picture that only a terminal can show. */
export function regexMessage(message: string): string {
  const reason = /error: ([^\n]+)\s*$/.exec(message)?.[1];
  return reason === undefined ? message : `Not a regular expression: ${reason}.`;
}
