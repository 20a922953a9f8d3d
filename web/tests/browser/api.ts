/** The server's own answers, which tests hold the page to. */

import { inject } from "vitest";
import type { components } from "../../src/api/schema";

export type Schema = components["schemas"];
export type Steps = Schema["StepAnswer"][];

export async function get<T>(path: string): Promise<T> {
  const response = await fetch(inject("url") + path);
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as T;
}

export async function post<T>(path: string, body: unknown): Promise<T> {
  const headers = { "content-type": "application/json" };
  const response = await fetch(inject("url") + path, { method: "POST", headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as T;
}

/** Opens places, waits until they are indexed, and returns the key of the view. */
export async function openView(...places: string[]): Promise<string> {
  let view = await post<Schema["ViewAnswer"]>("/api/view/open", { places });
  while (!view.indexing.done) {
    await new Promise((again) => setTimeout(again, 50));
    view = await get<Schema["ViewAnswer"]>(`/api/view/${view.view}`);
  }
  return view.view;
}
