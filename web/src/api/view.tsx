/** The view that is open: what its places hold, how far it is indexed, and its columns. */

import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { createContext, use, useCallback, useMemo, type ReactNode } from "react";
import { useViewState } from "@/state/location";
import { filterOf } from "@/state/url";
import { api, ask, type Schema } from "./client";

export interface OpenView {
  /** Names the view in every call. */
  key: string;
  answer: Schema["ViewAnswer"];
  /** The filter that all of the page goes by. */
  filter: string;
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

export function ViewProvider({ answer, children }: { answer: Schema["ViewAnswer"]; children: ReactNode }) {
  const [state] = useViewState();
  const queries = useQueryClient();
  const key = answer.view;
  const filter = filterOf(state);
  const refresh = useCallback(() => {
    void queries.invalidateQueries({ queryKey: ["view", key] });
    void queries.invalidateQueries({ queryKey: ["in", key] });
  }, [queries, key]);
  const view = useMemo(() => ({ key, answer, filter, refresh }), [key, answer, filter, refresh]);
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
