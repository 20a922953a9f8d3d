import { useCallback, useMemo, type ReactNode } from "react";
import { useRollout } from "@/reader/useRollout";
import { useViewState } from "@/state/location";
import { format, parse } from "@/state/url";
import { ChatOf, type Target } from "./ChatOf";
import type { Mark, Span } from "./places";
import type { Selected } from "./SelectionBar";

interface Props {
  /** Text that stands out: comments, quotes, hits. */
  marks?: readonly Mark[];
  /** More to do with selected text. */
  selectionActions?: (selection: Selected) => ReactNode;
}

/** The rollout of the URL, at the message and the text that the URL names. */
export function Chat({ marks, selectionActions }: Props) {
  const [{ rollout: id, message, range, channel }, set] = useViewState();
  const { data } = useRollout(id);
  const [start, end] = range ?? [null, null];
  const target = useMemo<Target | null>(
    () => (message === null ? null : { message, range: start === null ? null : [start, end], channel }),
    [message, start, end, channel],
  );
  const onMessage = useCallback((next: number) => set({ message: next, range: null, channel: null }, "replace"), [set]);
  if (!data) return null;
  return (
    <ChatOf
      key={data.id}
      rollout={data}
      target={target}
      onMessage={onMessage}
      linkTo={linkTo}
      {...(marks && { marks })}
      {...(selectionActions && { selectionActions })}
    />
  );
}

function linkTo({ message, start, end }: Span): string {
  const state = { ...parse(location.search), tab: "chat" as const, message, range: [start, end] as [number, number], channel: null };
  return location.origin + location.pathname + format(state);
}
