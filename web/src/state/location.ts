/** The address bar as the one source of view state: reading it, and changing it. */

import { useCallback, useMemo, useSyncExternalStore } from "react";
import { format, parse, type ViewState } from "./url";

const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  window.addEventListener("popstate", listener);
  return () => {
    listeners.delete(listener);
    window.removeEventListener("popstate", listener);
  };
}

/** Goes to an address of this page without loading it again. */
export function go(url: string, how: "push" | "replace" = "push") {
  if (url === location.pathname + location.search) return;
  if (how === "push") history.pushState(null, "", url);
  else history.replaceState(null, "", url);
  for (const listener of listeners) listener();
}

export function usePath(): string {
  return useSyncExternalStore(subscribe, () => location.pathname);
}

export function useSearch(): string {
  return useSyncExternalStore(subscribe, () => location.search);
}

/** Changes what is named and leaves the rest. Moves that a user would not want to step back through are replaced. */
export type SetViewState = (patch: Partial<ViewState>, how?: "push" | "replace") => void;

export function useViewState(): [ViewState, SetViewState] {
  const search = useSearch();
  const state = useMemo(() => parse(search), [search]);
  const set = useCallback<SetViewState>((patch, how) => {
    // Not the state of the last render: two changes in one event must both count.
    go(location.pathname + format({ ...parse(location.search), ...patch }), how);
  }, []);
  return [state, set];
}

/** Whether one more clause is on, and the list with it turned the other way. */
export function toggled(clauses: string[], clause: string): string[] {
  return clauses.includes(clause) ? clauses.filter((other) => other !== clause) : [...clauses, clause];
}
