/**
 * New rows of a run that goes on, or of a file that grows.
 *
 * While somebody reads further down, or has paused, new rows are counted and not put in: what is read must not move.
 */

import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useRef, useState } from "react";
import { ApiError, type Schema } from "@/api/client";
import { events } from "@/api/events";
import { useView } from "@/api/view";

export type TailState = "off" | "connecting" | "live" | "away";

export interface Tail {
  state: TailState;
  /** Why it ended, where asking again does not help. */
  error: Error | null;
  /** New rows that are not on screen yet. */
  waiting: number;
  /** Ids that came a moment ago. */
  fresh: ReadonlySet<string>;
  /** Puts in what is waiting. */
  take: () => void;
}

const AGAIN_MS = 1_000;
const ROWS_EVERY_MS = 250;

/** Curves, facets and figures are dearer than rows. */
const REST_EVERY_MS = 2_000;
const FRESH_MS = 1_500;

/** A rollout that is open is read once; it does not change because others came. */
const LASTING = new Set<unknown>(["rollout", "tokens", "raw", "diff", "siblings"]);

const NONE: ReadonlySet<string> = new Set();

export function useTail({ isOn, isHeld }: { isOn: boolean; isHeld: boolean }): Tail {
  const { key, filter, refresh } = useView();
  const { rows, rest } = useInvalidate(key);
  const [state, setState] = useState<TailState>("off");
  const [error, setError] = useState<Error | null>(null);
  const [waiting, setWaiting] = useState(0);
  const [fresh, setFresh] = useState(NONE);
  const held = useRef(isHeld);
  useEffect(() => {
    held.current = isHeld;
  }, [isHeld]);

  const take = useCallback(() => {
    setWaiting(0);
    rows();
  }, [rows]);

  // Back at the top, or no longer paused: what waited is put in.
  if (!isHeld && waiting > 0) setWaiting(0);
  useEffect(() => {
    if (isOn && !isHeld) rows();
  }, [isHeld, isOn, rows]);

  useEffect(() => {
    if (fresh.size === 0) return;
    const timer = setTimeout(() => setFresh(NONE), FRESH_MS);
    return () => clearTimeout(timer);
  }, [fresh]);

  useEffect(() => {
    if (!isOn) return;
    const stop = new AbortController();
    const listen = async () => {
      setState("connecting");
      setError(null);
      for await (const event of again(key, filter, stop.signal, () => setState("away"))) {
        setState("live");
        if (event.name === "error") setError(new Error((event.data as { message?: string }).message ?? "the server could not look for new rows"));
        if (event.name === "reset") refresh();
        if (event.name === "reset" || event.name === "begin") setWaiting(0);
        if (event.name === "begin" && !held.current) rows();
        if (event.name !== "rows") continue;
        const { rows: news } = event.data as Schema["NewRows"];
        setError(null);
        rest();
        if (held.current) {
          setWaiting((count) => count + news.length);
          continue;
        }
        setFresh((old) => old.union(new Set(news.map((row) => row.id))));
        rows();
      }
    };
    listen().catch((reason: unknown) => {
      setError(reason instanceof Error ? reason : new Error(String(reason)));
      setState("off");
    });
    return () => {
      stop.abort();
      setState("off");
      setWaiting(0);
    };
  }, [isOn, key, filter, refresh, rows, rest]);
  return { state, error, waiting, fresh, take };
}

/** The stream, begun again from the last event whenever it breaks off; what the server refuses is thrown. */
async function* again(view: string, filter: string, signal: AbortSignal, onAway: () => void) {
  let after = "";
  const isStopped = () => signal.aborted;
  while (!isStopped()) {
    try {
      const query = new URLSearchParams({ filter, columns: "step", after });
      for await (const event of events(`/api/view/${view}/tail?${query}`, { signal })) {
        if (event.id !== null) after = event.id;
        yield event;
      }
    } catch (error) {
      if (error instanceof ApiError && !error.isAway && error.status < 500) throw error;
    }
    if (isStopped()) return;
    onAway();
    await new Promise((done) => setTimeout(done, AGAIN_MS));
  }
}

/** Asks anew for rows and for the rest, each no more often than is worth it, and once more at the end. */
function useInvalidate(view: string) {
  const queries = useQueryClient();
  const timers = useRef(new Map<string, ReturnType<typeof setTimeout>>());
  useEffect(() => {
    const running = timers.current;
    return () => {
      for (const timer of running.values()) clearTimeout(timer);
      running.clear();
    };
  }, [view]);
  const soon = useCallback((name: string, afterMs: number, run: () => void) => {
    if (timers.current.has(name)) return;
    const timer = setTimeout(() => {
      timers.current.delete(name);
      run();
    }, afterMs);
    timers.current.set(name, timer);
  }, []);
  const rows = useCallback(
    () => soon("rows", ROWS_EVERY_MS, () => void queries.invalidateQueries({ queryKey: ["in", view, "rows"] })),
    [queries, soon, view],
  );
  const rest = useCallback(
    () =>
      soon("rest", REST_EVERY_MS, () => {
        void queries.invalidateQueries({ queryKey: ["view", view] });
        void queries.invalidateQueries({ queryKey: ["in", view], predicate: ({ queryKey: [, , what] }) => what !== "rows" && !LASTING.has(what) });
      }),
    [queries, soon, view],
  );
  return { rows, rest };
}
