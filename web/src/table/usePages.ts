/** Rows by their place, whichever of a million are in sight. */

import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useMemo } from "react";
import { api, ask, type Schema } from "@/api/client";
import { useView } from "@/api/view";
import { PAGE_ROWS, usePaged } from "./usePaged";

export type Page = Schema["RowsAnswer"];

export interface Question {
  filter: string;
  sort: string;
  /** Names by comma. */
  columns: string;
}

export interface Row {
  id: string;
  /** By name; undefined for what has not been asked for yet. */
  value: (column: string) => unknown;
  /** The same object as long as nothing in the row changed. */
  values: readonly unknown[];
}

/** A filter of a thousand ids is too long for a URL. */
const URL_CHARS_MAX = 2_000;

export function pageOptions(view: string, question: Question, page: number) {
  const asked = { ...question, offset: page * PAGE_ROWS, limit: PAGE_ROWS };
  return {
    queryKey: ["in", view, "rows", question.filter, question.sort, question.columns, page],
    queryFn: ({ signal }: { signal: AbortSignal }) =>
      question.filter.length > URL_CHARS_MAX
        ? ask(api.POST("/api/view/{view}/rows", { params: { path: { view } }, body: asked, signal }))
        : ask(api.GET("/api/view/{view}/rows", { params: { path: { view }, query: asked }, signal })),
    gcTime: 60_000,
  };
}

const places = new WeakMap<readonly string[], Map<string, number>>();

function placesOf(columns: readonly string[]): Map<string, number> {
  let found = places.get(columns);
  if (!found) places.set(columns, (found = new Map(columns.map((name, at) => [name, at]))));
  return found;
}

function rowOf(page: Page, at: number): Row | undefined {
  const row = page.rows[at];
  if (!row) return undefined;
  const values: readonly unknown[] = row.values;
  const columns = placesOf(page.columns);
  return { id: row.id, values, value: (name) => values[columns.get(name) ?? -1] };
}

export interface Pages {
  total: number | undefined;
  /** Undefined while it is on its way. */
  row: (index: number) => Row | undefined;
  /** Where a rollout stands, if its page is here. */
  find: (id: string) => number | undefined;
  /** Asks for it if it is not here. */
  fetch: (index: number) => Promise<Row | undefined>;
  /** Ids of the rows that are here, page by page. */
  ids: string[][];
  /** What is on screen; not what is wanted while that is on its way or was refused. */
  shown: Question;
  isOld: boolean;
  error: Error | null;
}

interface Wanted {
  question: Question;
  /** Rows in sight, from and to. */
  first: number;
  last: number;
  /** The last first: new rows of a run come at the top. */
  isReversed: boolean;
}

/** A column more or less: what is known of a row stays. */
const isLike = (before: Question, now: Question) => before.filter === now.filter && before.sort === now.sort;

export function usePages({ question, first, last, isReversed }: Wanted): Pages {
  const { key } = useView();
  const queries = useQueryClient();
  const options = (asked: Question, page: number) => pageOptions(key, asked, page);
  const { pages, placeOf, ...rest } = usePaged<Question, Page>({ question, options, isLike, first, last, isReversed });
  const { shown } = rest;
  const ids = useMemo(() => [...pages.values()].map((page) => page?.rows.map((row) => row.id) ?? []), [pages]);

  const row = useCallback(
    (index: number) => {
      const place = placeOf(index);
      const page = pages.get(Math.floor(place / PAGE_ROWS));
      return page && rowOf(page, place % PAGE_ROWS);
    },
    [pages, placeOf],
  );
  const find = useCallback(
    (id: string) => {
      for (const [page, answered] of pages) {
        const at = answered?.rows.findIndex((one) => one.id === id) ?? -1;
        if (at >= 0) return placeOf(page * PAGE_ROWS + at);
      }
      return undefined;
    },
    [pages, placeOf],
  );
  const fetch = useCallback(
    async (index: number) => {
      const place = placeOf(index);
      const page = await queries.query(pageOptions(key, shown, Math.floor(place / PAGE_ROWS)));
      return rowOf(page, place % PAGE_ROWS);
    },
    [key, queries, shown, placeOf],
  );
  return { ...rest, row, find, fetch, ids };
}
