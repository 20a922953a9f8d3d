/** Where one is on the page of what goes on, as a URL: a run, or a session and one of its turns. */

import { useCallback, useMemo } from "react";
import { go, useSearch } from "@/state/location";

export interface LivePlace {
  run: string | null;
  session: string | null;
  /** Null for the newest, whichever that is. */
  turn: number | null;
}

export function parsePlace(search: string): LivePlace {
  const params = new URLSearchParams(search);
  const turn = params.get("turn");
  return {
    run: params.get("run"),
    session: params.get("session") || null,
    turn: turn !== null && /^\d{1,9}$/.test(turn) ? Number(turn) : null,
  };
}

export function formatPlace({ run, session, turn }: LivePlace): string {
  const params = new URLSearchParams();
  if (run !== null) params.set("run", run);
  if (session !== null) params.set("session", session);
  if (session !== null && turn !== null) params.set("turn", String(turn));
  const text = params.toString();
  return text === "" ? "/live" : `/live?${text}`;
}

export function useLivePlace(): [LivePlace, (patch: Partial<LivePlace>, how?: "push" | "replace") => void] {
  const search = useSearch();
  const place = useMemo(() => parsePlace(search), [search]);
  const set = useCallback((patch: Partial<LivePlace>, how?: "push" | "replace") => go(formatPlace({ ...parsePlace(location.search), ...patch }), how), []);
  return [place, set];
}
