/** Next and previous hit: all hits of a rollout in their order, then the next rollout that has any. */

import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useMemo } from "react";
import { useView } from "@/api/view";
import { readRollout, useRollout } from "@/reader/useRollout";
import { useViewState } from "@/state/location";
import { parse } from "@/state/url";
import { inOrder, placeOf, placesIn, type Place } from "./place";
import { useHits, type Hit } from "./useHits";

export interface Walk {
  /** Of the open rollout among those that have hits; -1 where it has none. */
  at: number;
  /** Hits of the open rollout. */
  places: Place[];
  /** Which of them the reader is at; -1 where it is at none. */
  here: number;
  open: (hit: Hit) => void;
  /** To the hit of a rollout so many further in the list, from wherever the reader is. */
  skip: (by: 1 | -1) => void;
  next: () => void;
  previous: () => void;
}

export function useHitWalk(): Walk {
  const { key } = useView();
  const queries = useQueryClient();
  const { hits } = useHits();
  const [state, set] = useViewState();
  const { rollout, search, message, range } = state;
  const shown = useRollout(rollout);
  const pieces = shown.data !== undefined && rollout !== null && shown.data.id.startsWith(rollout) ? shown.data.pieces : null;
  const at = useMemo(() => (rollout === null ? -1 : hits.findIndex(({ id }) => id.startsWith(rollout))), [hits, rollout]);
  const places = useMemo(() => (pieces && search.length > 0 ? placesIn(pieces, search) : []), [pieces, search]);
  const here = useMemo(
    () => (range ? places.findIndex((place) => place.message === message && place.range[0] === range[0]) : -1),
    [places, message, range],
  );

  const open = useCallback(
    (hit: Hit, which: "first" | "last" = "first") => {
      // At once, and to the very place as soon as the rollout is there.
      set({ rollout: hit.id, message: hit.message, range: null, tab: "chat" });
      void readRollout(queries, key, hit.id).then(
        (read) => {
          const now = parse(location.search);
          if (now.rollout !== hit.id || now.range !== null) return;
          const first = placeOf(read.pieces, hit);
          const place = which === "last" ? (placesIn(read.pieces, now.search).at(-1) ?? first) : first;
          // An empty hit is of a rollout that was wanted for what it does not have.
          if (hit.count > 0) set(place, "replace");
        },
        // The reader says why it cannot be read.
        () => undefined,
      );
    },
    [set, queries, key],
  );

  const walk = (by: 1 | -1) => {
    const local = neighbour(places, { message, range }, by);
    if (at >= 0 && local) {
      set({ ...local, tab: "chat" }, "replace");
      return;
    }
    const hit = hits[at < 0 ? 0 : at + by];
    if (hit) open(hit, by === 1 ? "first" : "last");
  };
  const skip = (by: 1 | -1) => {
    const hit = hits[at < 0 ? 0 : at + by];
    if (hit) open(hit);
  };
  return { at, places, here, open: (hit) => open(hit), skip, next: () => walk(1), previous: () => walk(-1) };
}

/** The place before or after one; the reader may stand between two, or nowhere yet. */
export function neighbour(places: Place[], from: { message: number | null; range: [number, number] | null }, by: 1 | -1): Place | undefined {
  if (from.message === null) return by === 1 ? places[0] : undefined;
  const at: Place = { message: from.message, range: from.range ?? [-1, -1] };
  return by === 1 ? places.find((place) => inOrder(place, at) > 0) : places.findLast((place) => inOrder(place, at) < 0);
}
