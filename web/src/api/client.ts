/** Calls of the server, typed by its own description, with its errors as one class. */

import createClient from "openapi-fetch";
import type { components, paths } from "./schema";

export type Schema = components["schemas"];

/** What the server said no with, in its own words. `status` 0 means that it did not answer at all. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    /** Bytes of a filter or query that are to blame. */
    readonly at: [number, number] | null = null,
    /** What could stand there. */
    readonly expected: string[] = [],
    /** Ids of rollouts that may be meant. */
    readonly nearest: string[] = [],
  ) {
    super(message);
    this.name = "ApiError";
  }

  get isAway(): boolean {
    return this.status === 0;
  }
}

/** Told when a call needs a token, and when the server stops or begins to answer. */
type Listener = (what: "unauthorized" | "away" | "back") => void;
const listeners = new Set<Listener>();

export function onTrouble(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function tell(what: Parameters<Listener>[0]) {
  for (const listener of listeners) listener(what);
}

export async function fetchOrTell(input: Request | string, init?: RequestInit): Promise<Response> {
  try {
    const response = await fetch(input, init);
    if (response.status === 401) tell("unauthorized");
    tell("back");
    return response;
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    tell("away");
    throw new ApiError(0, "away", "the server does not answer; it is asked again until it does");
  }
}

export const api = createClient<paths>({ baseUrl: "", fetch: (request) => fetchOrTell(request) });

interface WireError {
  error?: { code?: string; message?: string; at?: [number, number]; expected?: string[]; nearest?: string[] };
}

export function errorOf(status: number, body: unknown): ApiError {
  const error = (body as WireError | undefined)?.error;
  const { code = "unknown", message = `the server answered with status ${status}`, at = null } = error ?? {};
  return new ApiError(status, code, message, at, error?.expected ?? [], error?.nearest ?? []);
}

/** The answer of a call, or its error thrown. */
export async function ask<T>(call: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<T> {
  const { data, error, response } = await call;
  if (!response.ok || data === undefined) throw errorOf(response.status, error);
  return data;
}
