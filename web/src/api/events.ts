/** Server-sent events over fetch: EventSource can neither post a body nor say why it was refused. */

import { errorOf, fetchOrTell } from "./client";

export interface ServerEvent {
  name: string;
  /** Parsed; what it is depends on the name. */
  data: unknown;
  id: string | null;
}

/** Yields events until the stream ends or `signal` aborts, in which case it ends quietly. */
export async function* events(
  url: string,
  options: { signal: AbortSignal; body?: unknown },
): AsyncGenerator<ServerEvent> {
  const headers = new Headers({ accept: "text/event-stream" });
  const init: RequestInit = { signal: options.signal, headers };
  if (options.body !== undefined) {
    headers.set("content-type", "application/json");
    init.method = "POST";
    init.body = JSON.stringify(options.body);
  }
  try {
    const response = await fetchOrTell(url, init);
    if (!response.ok || !response.body) {
      throw errorOf(response.status, await response.json().catch(() => undefined));
    }
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      rest += value;
      const parts = rest.split("\n\n");
      rest = parts.pop() ?? "";
      for (const part of parts) {
        const event = parse(part);
        if (event) yield event;
      }
    }
  } catch (error) {
    if (options.signal.aborted) return;
    throw error;
  }
}

export function parse(block: string): ServerEvent | null {
  let name = "message";
  let id: string | null = null;
  const data: string[] = [];
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    if (colon <= 0) continue;
    const value = line.slice(colon + 1).replace(/^ /, "");
    const field = line.slice(0, colon);
    if (field === "event") name = value;
    else if (field === "id") id = value;
    else if (field === "data") data.push(value);
  }
  if (data.length === 0) return null;
  const text = data.join("\n");
  try {
    return { name, id, data: JSON.parse(text) as unknown };
  } catch {
    return { name, id, data: text };
  }
}
