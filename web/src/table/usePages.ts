/**
 * Rows by their place, whichever of a million are in sight: pages are asked for as they come into sight and are kept
 * for a while after. The rows of the last question stay until the first of the new one are there; a question that is
 * refused changes nothing.
 */

import { queryOptions, useQueries, useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useState } from "react";
import { api, ask, type Schema } from "@/api/client";
import { useView } from "@/api/view";

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

export const PAGE_ROWS = 100;

/** Rows beyond the edges that are asked for ahead. */
const AHEAD = 40;

/** A filter of a thousand ids is too long for a URL. */
const URL_CHARS_MAX = 2_000;

/** While the scrollbar is dragged past them, pages are not worth asking for. */
const REST_MS = 60;

export function pageOptions(view: string, question: Question, page: number) {
  const asked = { ...question, offset: page * PAGE_ROWS, limit: PAGE_ROWS };
  return queryOptions({
    queryKey: ["in", view, "rows", question.filter, question.sort, question.columns, page],
    queryFn: ({ signal }) =>
      question.filter.length > URL_CHARS_MAX
        ? ask(api.POST("/api/view/{view}/rows", { params: { path: { view } }, body: asked, signal }))
        : ask(api.GET("/api/view/{view}/rows", { params: { path: { view }, query: asked }, signal })),
    gcTime: 60_000,
  });
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

export function usePages({ question, first, last, isReversed }: Wanted): Pages {
  const { key, answer } = useView();
  const queries = useQueryClient();
  const refetchInterval = answer.indexing.done ? (false as const) : 1000;
  const [{ shown, before }, setShown] = useState<{ shown: Question; before: Question | null }>({ shown: question, before: null });
  const wanted = useQuery({ ...pageOptions(key, question, 0), refetchInterval });
  if (wanted.data && shown !== question) setShown({ shown: question, before: shown });
  const head = useQuery({ ...pageOptions(key, shown, 0), enabled: shown === question });
  const total = head.data?.total;

  const numbers = useRested(pagesOf(first - AHEAD, last + AHEAD, total ?? 0, isReversed));
  const pages = useQueries({
    queries: numbers.map((page) => ({
      ...pageOptions(key, shown, page),
      // A column more or less: what is known of the row stays.
      placeholderData: () =>
        before?.filter === shown.filter && before.sort === shown.sort
          ? queries.getQueryData<Page>(pageOptions(key, before, page).queryKey)
          : undefined,
      refetchInterval,
    })),
    combine: useCallback((results: { data: Page | undefined }[]) => results.map((result) => result.data), []),
  });
  const loaded = useMemo(() => new Map(numbers.map((page, at) => [page, pages[at]])), [numbers, pages]);

  const ids = useMemo(() => pages.map((page) => page?.rows.map((row) => row.id) ?? []), [pages]);

  const placeOf = useCallback((index: number) => (isReversed ? (total ?? 0) - 1 - index : index), [isReversed, total]);
  const row = useCallback(
    (index: number) => {
      const place = placeOf(index);
      const page = loaded.get(Math.floor(place / PAGE_ROWS));
      return page && rowOf(page, place % PAGE_ROWS);
    },
    [loaded, placeOf],
  );
  const find = useCallback(
    (id: string) => {
      for (const [page, answered] of loaded) {
        const at = answered?.rows.findIndex((row) => row.id === id) ?? -1;
        // A mirror: what brings a place to its index brings the index to its place.
        if (at >= 0) return placeOf(page * PAGE_ROWS + at);
      }
      return undefined;
    },
    [loaded, placeOf],
  );
  const fetch = useCallback(
    async (index: number) => {
      const place = placeOf(index);
      const page = await queries.query(pageOptions(key, shown, Math.floor(place / PAGE_ROWS)));
      return rowOf(page, place % PAGE_ROWS);
    },
    [key, queries, shown, placeOf],
  );
  return { total, row, find, fetch, ids, shown, isOld: shown !== question, error: wanted.error };
}

export function pagesOf(first: number, last: number, total: number, isReversed: boolean): number[] {
  const from = Math.max(0, first);
  const to = Math.min(total, last);
  if (from >= to) return [];
  const [low, high] = isReversed ? [total - to, total - 1 - from] : [from, to - 1];
  const pages = [];
  for (let page = Math.floor(low / PAGE_ROWS); page <= Math.floor(high / PAGE_ROWS); page++) pages.push(page);
  return pages;
}

/** The same pages at once if they are near those before, else after a rest. */
function useRested(numbers: number[]): number[] {
  const name = numbers.join();
  const [rested, setRested] = useState({ name, numbers });
  const isNear = numbers.some((page) => rested.numbers.some((other) => Math.abs(page - other) <= 2));
  if (name !== rested.name && (isNear || rested.numbers.length === 0)) setRested({ name, numbers });
  useEffect(() => {
    if (name === rested.name) return;
    const timer = setTimeout(() => setRested({ name, numbers: name === "" ? [] : name.split(",").map(Number) }), REST_MS);
    return () => clearTimeout(timer);
  }, [name, rested.name]);
  return rested.numbers;
}
