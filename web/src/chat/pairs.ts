/** Which result answers which call. */

import type { Message, Part } from "./parts";

export interface Pairs {
  /** The part of the result, by the number of the call's part. */
  resultOf: Map<number, Part>;
  /** The part of the call, by the number of the result's part. */
  callOf: Map<number, Part>;
}

/** By id where both have one; what is left by order, within the results that follow before anything else is asked. */
export function pair(messages: readonly Message[]): Pairs {
  const resultOf = new Map<number, Part>();
  const callOf = new Map<number, Part>();
  const join = (call: Part, result: Part) => {
    if (!resultOf.has(call.index)) resultOf.set(call.index, result);
    callOf.set(result.index, call);
  };
  const parts = messages.flatMap((message) => message.parts);
  const calls = parts.filter((part) => part.kind === "call");
  // Ids are used again in long conversations: the last call before the result is meant.
  const waiting = new Map<string, Part>();
  for (const part of parts) {
    if (part.id === undefined) continue;
    if (part.kind === "call") waiting.set(part.id, part);
    const call = part.kind === "result" ? waiting.get(part.id) : undefined;
    if (call) join(call, part);
  }
  let open: Part[] = [];
  let lastMessage = -1;
  for (const part of parts) {
    if (part.kind === "call") {
      if (part.message !== lastMessage) open = [];
      lastMessage = part.message;
      if (!resultOf.has(part.index)) open.push(part);
    } else if (part.kind === "result" && !callOf.has(part.index)) {
      const named = part.id !== undefined && calls.some((call) => call.id !== undefined);
      // A result that names a call which is not there answers no other.
      const at = named ? -1 : open.findIndex((call) => call.name === part.name || part.name === undefined);
      const [call] = at < 0 ? [] : open.splice(at, 1);
      if (call) join(call, part);
      else if (resultHasSibling(part, parts, callOf)) continue;
    }
  }
  return { resultOf, callOf };
}

/** A result may be a list of parts: those after the first belong where the first does. */
function resultHasSibling(part: Part, parts: readonly Part[], callOf: Map<number, Part>): boolean {
  const before = parts[part.index - 1];
  const call = before && before.kind === "result" && before.message === part.message ? callOf.get(before.index) : undefined;
  if (call) callOf.set(part.index, call);
  return call !== undefined;
}

const TROUBLE = /^\s*(?:Traceback \(most recent call last\)|(?:[A-Z]\w*)?(?:Error|Exception)\b|error:|fatal:|panicked at)/;

/** Whether a result says that the call went wrong: by its fields, or by how it begins. */
export function wentWrong(result: Part): boolean {
  if (result.isError) return true;
  const head = result.text.slice(0, 4000);
  return TROUBLE.test(head) || head.includes("Traceback (most recent call last)") || /^\s*\{\s*"error"\s*:(?!\s*(?:null|false|""))/.test(head);
}
