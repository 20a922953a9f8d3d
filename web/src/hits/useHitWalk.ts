/** Next and previous hit: all hits of a rollout in their order, then the next rollout that has any. */

import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useMemo } from "react";
import { useView } from "@/api/view";
import { readRollout, useRollout } from "@/reader/useRollout";
import { useViewState } from "@/state/location";
import { parse, type ViewState } from "@/state/url";
import { placesIn, type Place } from "./place";
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
  const { rollout, search, message, channel, range } = state;
  const shown = useRollout(rollout);
  const pieces = shown.data !== undefined && rollout !== null && shown.data.id.startsWith(rollout) ? shown.data.pieces : null;
  const at = useMemo(() => (rollout === null ? -1 : hits.findIndex(({ id }) => id.startsWith(rollout))), [hits, rollout]);
  const places = useMemo(() => (pieces && search.length > 0 ? placesIn(pieces, search) : []), [pieces, search]);
  const here = useMemo(
    () => indexOf(places, { message, channel, range }),
    [places, message, channel, range],
  );

  const open = useCallback(
    (hit: Hit) => {
      // An empty hit is of a rollout that was wanted for what it does not have.
      const place = hit.count > 0 ? { message: hit.message, channel: hit.channel, range: [hit.start, hit.end] as [number, number] } : NOWHERE;
      set({ rollout: hit.id, tab: "chat", ...place });
    },
    [set],
  );
  const openLast = (hit: Hit) => {
    open(hit);
    void readRollout(queries, key, hit.id).then(
      (read) => {
        const last = placesIn(read.pieces, search).at(-1);
        // Unless the user has gone on meanwhile.
        if (last && parse(location.search).rollout === hit.id) set(last, "replace");
      },
      // The reader says why it cannot be read.
      () => undefined,
    );
  };

  const walk = (by: 1 | -1) => {
    const local = neighbour(places, { message, channel, range }, by);
    if (at >= 0 && local) {
      set({ ...local, tab: "chat" }, "replace");
      return;
    }
    const hit = hits[at < 0 ? 0 : at + by];
    if (!hit) return;
    if (by === 1) open(hit);
    else openLast(hit);
  };
  const skip = (by: 1 | -1) => {
    const hit = hits[at < 0 ? 0 : at + by];
    if (hit) open(hit);
  };
  return { at, places, here, open, skip, next: () => walk(1), previous: () => walk(-1) };
}

type At = Pick<ViewState, "message" | "channel" | "range">;

const NOWHERE: At = { message: null, channel: null, range: null };

function indexOf(places: Place[], { message, channel, range }: At): number {
  return range ? places.findIndex((place) => place.message === message && place.channel === channel && place.range[0] === range[0]) : -1;
}

/** The place before or after one; the reader may be at some other text, or nowhere yet. */
export function neighbour(places: Place[], at: At, by: 1 | -1): Place | undefined {
  const here = indexOf(places, at);
  if (here >= 0) return places[here + by];
  const message = at.message ?? -1;
  return by === 1 ? places.find((place) => place.message >= message) : places.findLast((place) => place.message < message);
}
