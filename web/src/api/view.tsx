/** The view that is open: what its places hold, how far it is indexed, and its columns. */

import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, createContext, use, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { useViewState } from "@/state/location";
import { filterOf } from "@/state/url";
import { api, ApiError, ask, type Schema } from "./client";

export interface OpenView {
  /** Names the view in every call. */
  key: string;
  answer: Schema["ViewAnswer"];
  /** The filter that all of the page goes by: the last one that was understood. */
  filter: string;
  /** Why the one in the URL is not understood; null where it is. */
  filterError: ApiError | null;
  /** Asks for everything anew: rows that were there before changed. */
  refresh: () => void;
}

/** Opens places, and asks how far indexing is until it is done. */
export function useOpen(places: string[]) {
  const opened = useQuery({
    queryKey: ["open", places],
    queryFn: () => ask(api.POST("/api/view/open", { body: { places } })),
    enabled: places.length > 0,
    staleTime: Infinity,
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
  return { error: opened.error ?? view.error, answer: view.data, isPending: opened.isPending };
}

const Context = createContext<OpenView | null>(null);

/**
 * The filter to go by. One that does not parse changes nothing: until it is mended, the last good one stays. Null while
 * the first is not yet known to be good.
 */
function useGoodFilter(key: string, wanted: string, indexed: boolean): { filter: string | null; error: ApiError | null } {
  const [good, setGood] = useState<string | null>(wanted === "" ? "" : null);
  const check = useQuery({
    // A field may turn up while rows are still being indexed, so that what was refused is understood later.
    queryKey: ["in", key, "check", wanted, indexed],
    queryFn: () => ask(api.GET("/api/view/{view}/check", { params: { path: { view: key }, query: { filter: wanted } } })),
    enabled: wanted !== "",
    staleTime: Infinity,
    refetchInterval: (query) => (!indexed && query.state.error ? 1000 : false),
  });
  const error = wanted !== "" && check.error instanceof ApiError && !check.error.isAway ? check.error : null;
  const next = wanted === "" || check.isSuccess ? wanted : error && (good === null || good === wanted) ? "" : good;
  if (next !== good) setGood(next);
  return { filter: next, error };
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
  const view = useMemo(
    () => (filter === null ? null : { key, answer, filter, filterError, refresh }),
    [key, answer, filter, filterError, refresh],
  );
  // What was asked while rows were still coming has not seen the last of them.
  const isDone = answer.indexing.done;
  const wasDone = useRef(isDone);
  useEffect(() => {
    if (isDone && !wasDone.current) void queries.invalidateQueries({ queryKey: ["in", key] });
    wasDone.current = isDone;
  }, [isDone, key, queries]);
  if (view === null) return null;
  return <Context value={view}>{children}</Context>;
}

export function useView(): OpenView {
  const view = use(Context);
  if (!view) throw new Error("no view is open here");
  return view;
}

/**
 * Asks something of the open view. Old data stays until the new is there, also when the new question is refused: a
 * filter that does not parse changes nothing. While rows are still being indexed it asks again.
 */
export function useAsk<T>(what: readonly unknown[], call: (view: string) => Promise<T>, options: { enabled?: boolean; live?: boolean } = {}) {
  const { key, answer } = useView();
  const { enabled = true, live = true } = options;
  return useQuery({
    queryKey: ["in", key, ...what],
    queryFn: () => call(key),
    enabled,
    placeholderData: keepPreviousData,
    refetchInterval: live && !answer.indexing.done ? 1000 : false,
  });
}
