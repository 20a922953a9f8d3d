/** What the server says of the example, so that tests compare the page with it and not with numbers from memory. */

import { inject } from "vitest";

export async function ask<T>(path: string, body?: unknown): Promise<T> {
  const init = body === undefined ? undefined : { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" } };
  const answer = await fetch(inject("url") + path, init);
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return (await answer.json()) as T;
}

/** The key of a view, once all of it is indexed. */
export async function viewOf(place = inject("example")): Promise<string> {
  const { view } = await ask<{ view: string }>("/api/view/open", { places: [place] });
  for (;;) {
    const { indexing } = await ask<{ indexing: { done: boolean } }>(`/api/view/${view}`);
    if (indexing.done) return view;
  }
}

export interface Grouped {
  total: number;
  columns: string[];
  rollouts: { id: string; values: (number | string | boolean | null)[] }[];
  best: string;
  worst: string;
  reward_mean: number;
  zero_variance: boolean;
}

/** The first row of a query. */
export async function first(view: string, sql: string): Promise<(string | number)[]> {
  const { rows } = await ask<{ rows: (string | number)[][] }>(`/api/view/${view}/sql`, { sql, limit: 1 });
  if (!rows[0]) throw new Error(`no row: ${sql}`);
  return rows[0];
}

export const groupOf = (view: string, id: string) => ask<Grouped>(`/api/view/${view}/rollouts/${id}/group`);

/** A column of a group, in its order. */
export function column(group: Grouped, name: string) {
  const at = group.columns.indexOf(name);
  return group.rollouts.map(({ values }) => values[at] ?? null);
}
