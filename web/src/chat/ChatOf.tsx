import { useVirtualizer } from "@tanstack/react-virtual";
import { useCallback, useEffect, useMemo, useRef, useState, type KeyboardEvent, type ReactNode } from "react";
import { useKey } from "@/keys/keys";
import { Notice } from "@/parts/Notice";
import type { TextMark } from "@/text/segments";
import { Bar } from "./Bar";
import { useEnd } from "./end";
import { useFind } from "./find";
import { useFolds } from "./folds";
import { hold } from "./hold";
import { Minimap } from "./Minimap";
import { pair } from "./pairs";
import { messagesOf, type Conversation } from "./parts";
import { byPart, locate, type Mark, type Place, type Span } from "./places";
import { RowView } from "./RowView";
import { estimate, rowAt, rowsOf } from "./rows";
import { SelectionBar, type Selected } from "./SelectionBar";
import css from "./Chat.module.css";

export interface ChatProps {
  rollout: Conversation;
  /** Text that stands out: comments, quotes, hits. */
  marks?: readonly Mark[];
  /** What is shown at first, and whenever it changes. */
  target?: Target | null;
  /** Told where the keys went. */
  onMessage?: (message: number) => void;
  /** The address of some text; without it there is nothing to copy. */
  linkTo?: (span: Span) => string;
  /** More to do with selected text. */
  selectionActions?: (selection: Selected) => ReactNode;
  /** Set while it is not over: its last message is still being said, or is to be answered. */
  goesOn?: "said" | "answered";
  /** What comes is followed by whoever is at the end. It begins there. */
  follows?: boolean;
}

export interface Target {
  message: number;
  range: [number, number] | null;
  channel: string | null;
}

const NONE: readonly Mark[] = [];
const NO_MARKS: readonly TextMark[] = [];

/** A conversation, however long. It asks no server: whoever has the rollout can show it. */
export function ChatOf({ rollout, marks = NONE, target = null, onMessage, linkTo, selectionActions, goesOn, follows = false }: ChatProps) {
  const messages = useMemo(() => messagesOf(rollout), [rollout]);
  const pairs = useMemo(() => pair(messages), [messages]);
  const hasReasoning = useMemo(() => messages.some((message) => message.parts.some((part) => part.kind === "reasoning")), [messages]);
  const folds = useFolds(messages);
  const { raw, isOpen, setOpen } = folds;
  const rows = useMemo(() => rowsOf(messages, pairs, { raw, isOpen }), [messages, pairs, raw, isOpen]);
  const scroller = useRef<HTMLDivElement>(null);
  // eslint-disable-next-line react-hooks/incompatible-library -- its functions are only called, never kept
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: (index) => {
      const row = rows[index];
      return row ? estimate(row) : 28;
    },
    getItemKey: (index) => rows[index]?.key ?? index,
    overscan: 4,
  });

  const inSight = virtual.scrollRect?.height ?? 0;
  useEnd(scroller, follows, virtual.getTotalSize());

  /** Where to go once the rows are there; a fold may have to open first. */
  const [goal, setGoal] = useState<{ place: Place | null; message: number } | null>(null);
  const goTo = useCallback(
    (place: Place) => {
      const message = messages[place.part.message];
      if (message) setOpen([message, place.part], true);
      setGoal({ place, message: place.part.message });
    },
    [messages, setOpen],
  );
  const find = useFind(messages, goTo);

  const all = useMemo(() => {
    const linked: Mark[] = target?.range ? [{ message: target.message, start: target.range[0], end: target.range[1], channel: target.channel, kind: "link" }] : [];
    const result = byPart(messages, [...marks, ...linked]);
    for (const [part, found] of find.marks) result.set(part, [...(result.get(part) ?? []), ...found]);
    return result;
  }, [messages, marks, target, find.marks]);

  const [aimed, setAimed] = useState<Target | null>(null);
  if (target !== aimed) {
    setAimed(target);
    const place = target?.range ? locate(messages, { message: target.message, start: target.range[0], end: target.range[1], channel: target.channel })[0] : undefined;
    const message = target ? messages[target.message] : undefined;
    if (place) goTo(place);
    else if (message) setGoal({ place: null, message: message.index });
  }

  useEffect(() => {
    if (!goal) return;
    const { place, message } = goal;
    const index = place ? rowAt(rows, place.part, place.from) : rows.findIndex((row) => row.kind === "head" && row.message.index === message);
    if (index < 0) return;
    const block = place ? "center" : "start";
    const approach = () => virtual.scrollToIndex(index, { align: block });
    const element = () => {
      const item = scroller.current?.querySelector<HTMLElement>(`[data-index="${index}"]`);
      if (!place) return item;
      // What is not marked, such as an entity of Markdown, is at least in its row.
      const marked = [...(item?.querySelectorAll<HTMLElement>("mark") ?? [])];
      return marked.find((mark) => Number(mark.dataset["at"]) >= place.from) ?? marked.at(-1) ?? item;
    };
    if (scroller.current) return hold({ scroller: scroller.current, element, approach, block });
    // Only a new goal moves the page: rows that change under a reader must not.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [goal]);

  const step = (by: 1 | -1) => {
    const heads = rows.flatMap((row, index) => (row.kind === "head" ? [{ index, message: row.message.index }] : []));
    const top = (virtual.scrollOffset ?? 0) + 1;
    const first = virtual.measurementsCache.findLastIndex((item) => item.start <= top);
    const next = by > 0 ? heads.find((head) => head.index > first) : heads.findLast((head) => head.index < first || (head.index === first && (virtual.measurementsCache[first]?.start ?? 0) < top - 2));
    if (!next) return;
    virtual.scrollToIndex(next.index, { align: "start" });
    onMessage?.(next.message);
  };
  useKey({ keys: "Shift+J", label: "Next message", group: "Chat", run: () => step(1) });
  useKey({ keys: "Shift+K", label: "Previous message", group: "Chat", run: () => step(-1) });

  // The browser would glide there, and stop on the way when rows that it passes turn out to be of another height.
  const jump = (event: KeyboardEvent<HTMLDivElement>) => {
    const isEnd = event.key === "End";
    const isMeant = event.target === event.currentTarget && !event.altKey && !event.ctrlKey && !event.metaKey && !event.shiftKey;
    if (!isMeant || (!isEnd && event.key !== "Home")) return;
    event.preventDefault();
    virtual.scrollToIndex(isEnd ? rows.length - 1 : 0, { align: isEnd ? "end" : "start" });
  };

  if (messages.length === 0) return <Notice title="This row has no messages">Its fields are under Info.</Notice>;
  return (
    <div className={css["chat"]}>
      <Bar folds={folds} find={find} messages={messages.length} hasReasoning={hasReasoning} isAllFolded={!messages.some(isOpen)} />
      <div className={css["body"]}>
        <div ref={scroller} className={css["scroller"]} tabIndex={0} role="region" aria-label="Messages" onKeyDown={jump}>
          <div className={css["whole"]} style={{ height: `${virtual.getTotalSize()}px` }}>
            {virtual.getVirtualItems().map((item) => {
              const row = rows[item.index];
              if (!row) return null;
              const own = row.kind === "head" || row.kind === "empty" ? NO_MARKS : (all.get(row.part.index) ?? NO_MARKS);
              return (
                <div key={item.key} ref={virtual.measureElement} data-index={item.index} className={css["item"]} style={{ transform: `translateY(${item.start}px)` }}>
                  <RowView row={row} marks={own} pairs={pairs} raw={raw} onOpen={setOpen} goesOn={row.message.index === messages.length - 1 ? goesOn : undefined} isEnd={item.index === rows.length - 1} />
                </div>
              );
            })}
          </div>
        </div>
        <Minimap rows={rows} marks={all} measured={virtual.measurementsCache} height={Math.max(virtual.getTotalSize(), inSight)} offset={virtual.scrollOffset ?? 0} inSight={inSight} onJump={(offset) => virtual.scrollToOffset(offset)} />
      </div>
      <SelectionBar within={scroller} messages={messages} linkTo={linkTo} actions={selectionActions} />
    </div>
  );
}
