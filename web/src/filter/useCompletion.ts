import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, ask, type Schema } from "@/api/client";
import { useView } from "@/api/view";
import { toBytes } from "./offsets";

export type Suggestion = Schema["SuggestionAnswer"];

export interface Completion {
  suggestions: Suggestion[];
  /** The one that arrows have reached; -1 before the first arrow, so that Enter still runs the filter. */
  active: number;
  move: (by: number) => void;
  /** Bytes of the text that a suggestion takes the place of; null while they are for an older text. */
  place: { from: number; to: number } | null;
  open: (text: string, at: number) => void;
  close: () => void;
}

/** What could be typed at the cursor, asked for while the list is open. */
export function useCompletion(): Completion {
  const { key } = useView();
  const [asked, setAsked] = useState<{ text: string; at: number } | null>(null);
  const [active, setActive] = useState(-1);
  const answer = useQuery({
    queryKey: ["in", key, "complete", asked?.text, asked?.at],
    queryFn: () => ask(api.GET("/api/view/{view}/complete", { params: { path: { view: key }, query: { filter: asked?.text ?? "", at: asked?.at ?? 0 } } })),
    enabled: asked !== null,
    placeholderData: keepPreviousData,
  });
  const suggestions = asked === null ? [] : (answer.data?.suggestions ?? []);
  return {
    suggestions,
    active: Math.min(active, suggestions.length - 1),
    move: (by) => setActive((old) => (suggestions.length === 0 ? -1 : (Math.max(old, by < 0 ? 0 : -1) + by + suggestions.length) % suggestions.length)),
    place: answer.data && !answer.isPlaceholderData ? { from: answer.data.from, to: answer.data.to } : null,
    open: (text, at) => {
      setActive(-1);
      setAsked({ text, at: toBytes(text, at) });
    },
    close: () => setAsked(null),
  };
}
