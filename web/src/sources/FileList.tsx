import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useId, useRef, useState, type KeyboardEvent } from "react";
import { Notice } from "@/parts/Notice";
import { FileLine } from "./FileLine";
import type { Entry } from "./entries";
import css from "./Browser.module.css";

interface Props {
  entries: Entry[];
  /** Names are shown from here on; null for the last part only. */
  within: string | null;
  /** The keyboard was in the list of another folder, which is gone. */
  takesFocus: boolean;
  selected: ReadonlyMap<string, Entry>;
  marked: string[];
  onToggle: (entry: Entry) => void;
  onMark: (entry: Entry) => void;
  onEnter: (entry: Entry) => void;
  onUp: () => void;
}

const LINE = 28;

/** One stop for Tab, then arrows; only what is in sight is in the page. */
export function FileList({ entries, within, takesFocus, selected, marked, onToggle, onMark, onEnter, onUp }: Props) {
  const [at, setAt] = useState(0);
  const id = useId();
  const scroller = useRef<HTMLDivElement>(null);
  // eslint-disable-next-line react-hooks/incompatible-library -- the list itself is not memoised
  const lines = useVirtualizer({ count: entries.length, getScrollElement: () => scroller.current, estimateSize: () => LINE, overscan: 12 });
  const active = Math.min(at, entries.length - 1);
  const first = entries[0]?.place;
  useEffect(() => {
    const active = document.activeElement;
    // A dialog gives the focus to the first button it has, which closes it: not what it was opened for.
    const isLost = active === null || active === document.body || active instanceof HTMLDialogElement || active.closest("dialog > header") !== null;
    if (takesFocus && isLost) scroller.current?.focus();
  }, [first, takesFocus]);
  const onKeyDown = (event: KeyboardEvent) => {
    const page = Math.max(1, Math.floor((scroller.current?.clientHeight ?? LINE) / LINE) - 1);
    const moves: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -entries.length, End: entries.length };
    const by = moves[event.key];
    const entry = entries[active];
    if (by !== undefined) {
      const next = Math.min(entries.length - 1, Math.max(0, active + by));
      setAt(next);
      lines.scrollToIndex(next);
    } else if (event.key === "Backspace" || event.key === "ArrowLeft") onUp();
    else if (entry && (event.key === "Enter" || (event.key === "ArrowRight" && entry.kind === "folder"))) onEnter(entry);
    else if (entry && event.key === " ") onToggle(entry);
    else if (entry && event.key === "m") onMark(entry);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div
      ref={scroller}
      className={css["list"]}
      role="grid"
      aria-label="Files"
      aria-multiselectable
      aria-rowcount={entries.length}
      aria-activedescendant={entries.length > 0 ? `${id}-${active}` : undefined}
      tabIndex={0}
      title="Arrows move, Enter opens, Space selects, m marks, Backspace goes up"
      onKeyDown={onKeyDown}
    >
      {entries.length === 0 && <Notice title="Nothing here">Files of rollouts end in .jsonl, .json, .parquet and their packed kinds.</Notice>}
      <div role="rowgroup" style={{ height: lines.getTotalSize(), position: "relative" }}>
        {lines.getVirtualItems().map((line) => {
          const entry = entries[line.index];
          if (!entry) return null;
          return (
            <FileLine
              key={entry.place}
              id={`${id}-${line.index}`}
              index={line.index}
              top={line.start}
              entry={entry}
              within={within}
              isActive={line.index === active}
              isSelected={selected.has(entry.place)}
              isMarked={marked.includes(entry.place)}
              onToggle={() => {
                setAt(line.index);
                onToggle(entry);
              }}
              onMark={() => onMark(entry)}
              onEnter={() => {
                setAt(0);
                onEnter(entry);
              }}
            />
          );
        })}
      </div>
    </div>
  );
}
