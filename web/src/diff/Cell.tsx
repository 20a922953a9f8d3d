import { useState } from "react";
import { count, counted } from "@/parts/numbers";
import { visibleText } from "@/tokens/visible";
import type { Segment } from "./compare";
import css from "./Diff.module.css";

/** Equal text beyond it is folded, but for so much at either end. */
const FOLD_ABOVE = 360;
const CONTEXT = 120;
/** Changed text is shown so far, and further when asked for. */
const CHANGED_SHOWN = 20_000;

interface Props {
  segments: Segment[];
  /** Whether something that differs is before and after, so that the equal text next to it says where. */
  head: boolean;
  tail: boolean;
}

export function Cell({ segments, head, tail }: Props) {
  return (
    <div className={css["cell"]} dir="auto">
      {segments.map((segment, i) => {
        if (segment.kind === "same") return <Same key={i} text={segment.text} head={head || i > 0} tail={tail || i < segments.length - 1} />;
        return <Changed key={i} segment={segment} />;
      })}
    </div>
  );
}

function Same({ text, head, tail }: { text: string; head: boolean; tail: boolean }) {
  const [open, setOpen] = useState(false);
  if (open || text.length <= FOLD_ABOVE) return <>{visibleText(text)}</>;
  const before = head ? text.slice(0, CONTEXT) : "";
  const after = tail ? text.slice(-CONTEXT) : "";
  return (
    <>
      {visibleText(before)}
      <button type="button" className={css["fold"]} title="Show them" onClick={() => setOpen(true)}>
        … {counted(text.length - before.length - after.length, "equal character")}
      </button>
      {visibleText(after)}
    </>
  );
}

function Changed({ segment: { kind, text } }: { segment: Segment }) {
  const [shown, setShown] = useState(CHANGED_SHOWN);
  const more = text.length > shown && (
    <button type="button" className={css["fold"]} onClick={() => setShown(shown * 5)}>
      … {count(text.length - shown)} more characters
    </button>
  );
  const part = visibleText(text.slice(0, shown));
  return kind === "removed" ? (
    <del className={css["removed"]}>
      {part}
      {more}
    </del>
  ) : (
    <ins className={css["added"]}>
      {part}
      {more}
    </ins>
  );
}
