/** Find in the chat: over the data, so that what is folded or far away is found as well. */

import { useCallback, useDeferredValue, useMemo, useState } from "react";
import { findAll } from "@/text/find";
import type { TextMark } from "@/text/segments";
import type { Message } from "./parts";
import type { Place } from "./places";

/** More are not counted: nobody steps through them. */
export const FOUND_MAX = 10_000;

export function findPlaces(messages: readonly Message[], wanted: string, isCase: boolean): Place[] {
  const places: Place[] = [];
  for (const part of messages.flatMap((message) => message.parts)) {
    const limit = FOUND_MAX - places.length;
    if (limit <= 0) break;
    if (part.kind === "other") continue;
    const end = part.text.length - part.tail;
    for (const { from, to } of findAll(part.text, wanted, { case: isCase, limit })) {
      // Signs that a heading stands for are not on screen.
      if (from >= part.lead && to <= end) places.push({ part, from, to });
    }
  }
  return places;
}

export function useFind(messages: readonly Message[], goTo: (place: Place) => void) {
  const [isShown, setShown] = useState(false);
  const [wanted, setWanted] = useState("");
  const [isCase, setCase] = useState(false);
  const [current, setCurrent] = useState(-1);
  const late = useDeferredValue(isShown ? wanted : "");
  const places = useMemo(() => findPlaces(messages, late, isCase), [messages, late, isCase]);

  const marks = useMemo(() => {
    const result = new Map<number, TextMark[]>();
    places.forEach(({ part, from, to }, i) => {
      const list = result.get(part.index) ?? [];
      list.push({ from, to, kind: i === current ? "now" : "found" });
      result.set(part.index, list);
    });
    return result;
  }, [places, current]);

  const move = useCallback(
    (by: 1 | -1) => {
      if (places.length === 0) return;
      const next = current < 0 ? (by > 0 ? 0 : places.length - 1) : (current + by + places.length) % places.length;
      setCurrent(next);
      const place = places[next];
      if (place) goTo(place);
    },
    [places, current, goTo],
  );
  const look = useCallback((text: string) => {
    setWanted(text);
    setCurrent(-1);
  }, []);
  const turnCase = useCallback((on: boolean) => {
    setCase(on);
    setCurrent(-1);
  }, []);

  return { isShown, setShown, wanted, look, isCase, turnCase, current, total: places.length, marks, move };
}

export type Find = ReturnType<typeof useFind>;
