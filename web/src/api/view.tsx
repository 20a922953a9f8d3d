/** The view that is open: what its places hold, how far it is indexed, and its columns. */

import { keepPreviousData, useQuery, useQueryClient, type QueryClient } from "@tanstack/react-query";
import { type ReactNode, createContext, use, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { useViewState } from "@/state/location";
import { filterOf } from "@/state/url";
import { useCheck } from "./check";
import { api, ApiError, ask, type Schema } from "./client";

export interface OpenView {
  /** Names the view in every call. */
  key: string;
  answer: Schema["ViewAnswer"];
  /** The filter that all of the page goes by: the last one that was understood. */
  filter: string;
  /** Why the one in the URL is not understood; null where it is. */
  filterError: ApiError | null;
  /** Rows are still missing that were there when it was opened. What a run adds while it is followed is no such thing. */
  isIndexing: boolean;
  /** Asks for everything anew: rows that were there before changed. */
  refresh: () => void;
}

function isYetToCome(places: string[], error: ApiError): boolean {
  return error.status === 404 && places.every((place) => place.startsWith("yard://"));
}

/** Opens places, and asks how far indexing is until it is done. */
export function useOpen(places: string[]) {
  const opened = useQuery({
    queryKey: ["open", places],
    queryFn: () => ask(api.POST("/api/view/open", { body: { places } })),
    enabled: places.length > 0,
    staleTime: Infinity,
    // A run that has just begun has no archive yet; any other place that is not there stays so.
    retry: (_, error) => error instanceof ApiError && (error.isAway || isYetToCome(places, error)),
    retryDelay: 1000,
  });
  const key = opened.data?.view;
  const view = useQuery({
    queryKey: ["view", key],
    queryFn: () => ask(api.GET("/api/view/{view}", { params: { path: { view: key ?? "" } } })),
    enabled: key !== undefined,
    initialData: opened.data,
    staleTime: Infinity,
    refetchInterval: (query) => (query.state.data?.indexing.done === false ? 400 : false),
  });
  const isWaiting = opened.failureReason instanceof ApiError && isYetToCome(places, opened.failureReason);
  return { error: opened.error ?? view.error, answer: view.data, isWaiting };
}

const Context = createContext<OpenView | null>(null);

/**
 * The filter to go by. One that does not parse changes nothing: until it is mended, the last good one stays. Null while
 * the first is not yet known to be good.
 */
function useGoodFilter(key: string, wanted: string, indexed: boolean): { filter: string | null; error: ApiError | null } {
  const [good, setGood] = useState<string | null>(wanted === "" ? "" : null);
  const refusal = useCheck(key, wanted, indexed);
  const next = refusal === null ? wanted : refusal && (good === null || good === wanted) ? "" : good;
  if (next !== good) setGood(next);
  return { filter: next, error: refusal ?? null };
}

export function ViewProvider({ answer, children }: { answer: Schema["ViewAnswer"]; children: ReactNode }) {
  const [state] = useViewState();
  const queries = useQueryClient();
  const key = answer.view;
  const { filter, error: filterError } = useGoodFilter(key, filterOf(state), answer.indexing.done);
  const refresh = useCallback(() => {
    void queries.invalidateQueries({ queryKey: ["view", key] });
    void queries.invalidateQueries({ queryKey: ["in", key] });
  }, [queries, key]);
  const [wasComplete, setWasComplete] = useState(answer.indexing.done);
  if (answer.indexing.done && !wasComplete) setWasComplete(true);
  const isIndexing = !answer.indexing.done && !(state.follow && wasComplete);
  const view = useMemo(
    () => (filter === null ? null : { key, answer, filter, filterError, isIndexing, refresh }),
    [key, answer, filter, filterError, isIndexing, refresh],
  );
  // What was asked while rows were still coming has not seen the last of them. Later the tail says what is new, and
  // who reads with a pause must not have rows put under the eyes.
  const isDone = answer.indexing.done;
  const isFollowed = state.follow;
  const wasDone = useRef(isDone);
  const wasEverDone = useRef(isDone);
  useEffect(() => {
    if (isDone && !wasDone.current) {
      const keepsRows = isFollowed && wasEverDone.current;
      void queries.invalidateQueries({ queryKey: ["in", key], predicate: ({ queryKey }) => !(keepsRows && queryKey[2] === "rows") });
    }
    wasDone.current = isDone;
    wasEverDone.current ||= isDone;
  }, [isDone, isFollowed, key, queries]);
  if (view === null) return null;
  return <Context value={view}>{children}</Context>;
}

export function useView(): OpenView {
  const view = use(Context);
  if (!view) throw new Error("no view is open here");
  return view;
}

/** A filter of one's own, or the last one that went with a filter that parses. */
export function useLastGood(filter: string): string {
  const { filterError } = useView();
  const [good, setGood] = useState(filterError ? "" : filter);
  if (!filterError && good !== filter) setGood(filter);
  return filterError ? good : filter;
}

/** Rows have the server for themselves for so long; then figures are asked for whatever happens. */
const ROWS_FIRST_MS = 2000;

/** Once the rows of a filter are there: with a million of them, figures that are counted at once would hold them up. */
async function afterRows(queries: QueryClient, view: string): Promise<void> {
  const until = performance.now() + ROWS_FIRST_MS;
  do await new Promise((again) => setTimeout(again, 10));
  while (performance.now() < until && queries.isFetching({ queryKey: ["in", view, "rows"] }) > 0);
}

/** Asks something of the open view. Old data stays until the new is there; while rows are being indexed it asks again. */
export function useAsk<T>(what: readonly unknown[], call: (view: string) => Promise<T>, options: { enabled?: boolean; live?: boolean; isAside?: boolean } = {}) {
  const queries = useQueryClient();
  const { key, answer } = useView();
  const { enabled = true, live = true, isAside = false } = options;
  return useQuery({
    queryKey: ["in", key, ...what],
    queryFn: async () => {
      if (isAside) await afterRows(queries, key);
      return await call(key);
    },
    enabled,
    placeholderData: keepPreviousData,
    refetchInterval: live && !answer.indexing.done ? 1000 : false,
  });
}
