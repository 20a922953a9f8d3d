/**
 * Pages of a long list, whichever are in sight. The list of the last question stays until the first page of the new one
 * is there; a question that is refused changes nothing.
 */

import { useQueries, useQuery, useQueryClient, type QueryKey } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useState } from "react";
import { useView } from "@/api/view";
import { useViewState } from "@/state/location";

export const PAGE_ROWS = 100;

/** Rows beyond the edges that are asked for ahead. */
const AHEAD = 40;

/** While the scrollbar is dragged past them, pages are not worth asking for. */
const REST_MS = 60;

interface Options<P> {
  queryKey: QueryKey;
  queryFn: (context: { signal: AbortSignal }) => Promise<P>;
  gcTime: number;
}

interface Wanted<Q, P> {
  /** The same object as long as it is the same question. */
  question: Q;
  options: (question: Q, page: number) => Options<P>;
  /** Whether the pages of one question stand for those of the other while they are on their way. */
  isLike: (before: Q, now: Q) => boolean;
  /** In sight, from and to. */
  first: number;
  last: number;
  /** The last first: new rows of a run come at the top. */
  isReversed: boolean;
}

export interface Paged<Q, P> {
  total: number | undefined;
  /** By number, those in sight; undefined while one is on its way. */
  pages: Map<number, P | undefined>;
  /** Which of all, for an index of the list, and the other way: it is a mirror. */
  placeOf: (index: number) => number;
  /** What is on screen; not what is wanted while that is on its way or was refused. */
  shown: Q;
  isOld: boolean;
  error: Error | null;
}

export function usePaged<Q, P extends { total: number }>({ question, options, isLike, first, last, isReversed }: Wanted<Q, P>): Paged<Q, P> {
  const { answer } = useView();
  const queries = useQueryClient();
  const [{ follow }] = useViewState();
  // While it is followed the tail says when rows are asked for: who reads with a pause must find them as they were.
  const refetchInterval = answer.indexing.done || follow ? (false as const) : 1000;
  const [{ shown, before }, setShown] = useState<{ shown: Q; before: Q | null }>({ shown: question, before: null });
  const wanted = useQuery({ ...options(question, 0), refetchInterval });
  if (wanted.data && shown !== question) setShown({ shown: question, before: shown });
  const head = useQuery({ ...options(shown, 0), enabled: shown === question });
  const newest = head.data?.total;
  const grown = useGrown(shown, newest, isReversed);
  const total = grown.total;

  const inSight = (of: number | undefined) => pagesOf(first - AHEAD, last + AHEAD, of ?? 0, isReversed);
  const awaited = grown.awaited === undefined ? [] : inSight(grown.awaited);
  const numbers = useRested([...new Set([...inSight(total), ...awaited])].sort((a, b) => a - b));
  const answers = useQueries({
    queries: numbers.map((page) => ({
      ...options(shown, page),
      placeholderData: () => (before !== null && isLike(before, shown) ? queries.getQueryData<P>(options(before, page).queryKey) : undefined),
      refetchInterval,
    })),
    combine: useCallback((results: { data: P | undefined }[]) => results.map((result) => result.data), []),
  });
  const pages = useMemo(() => new Map(numbers.map((page, at) => [page, answers[at]])), [numbers, answers]);
  const needed = grown.awaited;
  if (needed !== undefined && awaited.every((page) => (pages.get(page)?.total ?? 0) >= needed)) grown.settle();
  const placeOf = useCallback((index: number) => (isReversed ? (total ?? 0) - 1 - index : index), [isReversed, total]);
  return { total, pages, placeOf, shown, isOld: shown !== question, error: wanted.error };
}

/**
 * How many rows are shown while more come in at the top. Every row stands elsewhere then, so those on screen stay until
 * the pages of the new ones are here. What is awaited does not move until it came, however fast the run is.
 */
function useGrown(of: unknown, newest: number | undefined, isReversed: boolean) {
  const [held, setHeld] = useState<{ of: unknown; total: number | undefined; awaited: number | undefined }>({ of, total: newest, awaited: undefined });
  const isGrowth = isReversed && held.of === of && held.total !== undefined && held.total > 0 && newest !== undefined && newest > held.total;
  if (!isGrowth && (held.of !== of || held.total !== newest)) setHeld({ of, total: newest, awaited: undefined });
  else if (isGrowth && held.awaited === undefined) setHeld({ ...held, awaited: newest });
  const settle = () => setHeld({ of, total: held.awaited, awaited: undefined });
  return { total: isGrowth ? held.total : newest, awaited: isGrowth ? held.awaited : undefined, settle };
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
