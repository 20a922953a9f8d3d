/** The search of the URL, as it runs: one for the whole page, so that the list and the reader walk the same hits. */

import { createContext, use, useCallback, useEffect, useMemo, useRef, useState, type ReactNode } from "react";
import { errorOf, type Schema } from "@/api/client";
import { events } from "@/api/events";
import { useView } from "@/api/view";
import { useViewState } from "@/state/location";
import { bodyOf, mistakeIn } from "./conditions";

export type Hit = Omit<Schema["HitAnswer"], "step" | "reward"> & { step: number | null; reward: number | null };

export interface Scanned {
  rows_done: number;
  rows: number;
  bytes_done: number;
  bytes: number;
  hits: number;
  more: boolean;
}

export interface Search {
  /** One for each rollout that has any, in the order of the files. */
  hits: Hit[];
  scanned: Scanned | null;
  state: "none" | "running" | "done" | "stopped" | "failed";
  error: Error | null;
  secs: number;
}

const NONE: Search = { hits: [], scanned: null, state: "none", error: null, secs: 0 };

interface Running extends Search {
  stop: () => void;
  again: () => void;
}

const Context = createContext<Running | null>(null);

export function HitsProvider({ children }: { children: ReactNode }) {
  const { key, filter, answer } = useView();
  const [{ search: conditions }] = useViewState();
  const [search, setSearch] = useState<Search>(NONE);
  const [runs, setRuns] = useState(0);
  const control = useRef<AbortController>(null);
  // As text, so that the same conditions of another render are the same.
  const asked = JSON.stringify(bodyOf(conditions, filter));
  const isAsked = conditions.length > 0 && mistakeIn(conditions) === null;
  const { done: isIndexed } = answer.indexing;
  const { revision } = answer;
  useEffect(() => {
    if (!isAsked) return;
    const running = new AbortController();
    control.current = running;
    void follow(`/api/view/${key}/search`, asked, running.signal, setSearch);
    return () => running.abort();
    // Once all is indexed, or rows changed, the same search has other hits.
  }, [key, asked, isAsked, runs, isIndexed, revision]);
  const stop = useCallback(() => {
    control.current?.abort();
    setSearch((old) => ({ ...old, state: "stopped" }));
  }, []);
  const again = useCallback(() => setRuns((n) => n + 1), []);
  const value = useMemo(() => ({ ...(isAsked ? search : NONE), stop, again }), [search, isAsked, stop, again]);
  return <Context value={value}>{children}</Context>;
}

export function useHits(): Running {
  const running = use(Context);
  if (!running) throw new Error("HitsProvider is missing");
  return running;
}

/** Hits come by the thousand; the page is told of them a few times a second. */
const TELL_MS = 80;

async function follow(url: string, asked: string, signal: AbortSignal, tell: (next: (old: Search) => Search) => void) {
  const began = performance.now();
  let hits: Hit[] = [];
  let scanned: Scanned | null = null;
  let told = 0;
  const say = (state: Search["state"], error: Error | null = null) => {
    if (signal.aborted) return;
    told = performance.now();
    // A copy: the list on screen must not grow without being told.
    hits = [...hits];
    const now = { hits, scanned, state, error, secs: (told - began) / 1000 };
    // What was found before stays where the new search was refused.
    tell((old) => (state === "failed" && hits.length === 0 ? { ...old, state, error } : now));
  };
  tell((old) => ({ ...old, state: "running", error: null, scanned: null }));
  try {
    for await (const { name, data } of events(url, { signal, body: JSON.parse(asked) })) {
      if (name === "hit") hits.push(data as Hit);
      else if (name === "progress" || name === "done") scanned = data as Scanned;
      if (name === "done" || name === "error") {
        say(name === "done" ? "done" : "failed", name === "done" ? null : errorOf(500, { error: data }));
        return;
      }
      if (performance.now() - told > TELL_MS) say("running");
    }
    // A stream that ends without a word was cut off: its hits are good, but not all.
    say("stopped");
  } catch (error) {
    say("failed", error instanceof Error ? error : new Error(String(error)));
  }
}
