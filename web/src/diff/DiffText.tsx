import { memo, useEffect, useRef } from "react";
import { Cell } from "./Cell";
import type { DiffBlock, DiffResult, DiffRow } from "./rows";
import css from "./Diff.module.css";

/** Rows that are drawn before somebody goes further. */
const SHOWN = 400;

const CHANNELS: Record<string, string> = { tool_call: "tool call", tool_result: "tool result" };

/** The text of both. The difference that is looked at is in sight and has a mark. */
export function DiffText({ result, at, inline }: { result: DiffResult; at: number; inline: boolean }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    box.current?.querySelector(`[data-change="${at}"]`)?.scrollIntoView({ block: "center" });
  }, [at, inline]);
  const until = Math.max(SHOWN, at + SHOWN / 2);
  return (
    <div ref={box} className={css["text"]} data-inline={inline} role="region" aria-label="Differences" tabIndex={0}>
      {result.blocks.map((block, i) => {
        const first = block.rows.find(({ change }) => change !== null)?.change ?? null;
        if (first !== null && first > until) return null;
        const last = block.rows.findLast(({ change }) => change !== null)?.change ?? null;
        const isHere = first !== null && last !== null && at >= first && at <= last;
        return <Block key={i} block={block} inline={inline} until={until} at={isHere ? at : null} />;
      })}
      {result.changes > until && <p className={css["wait"]}>More differences follow; go on with the next one.</p>}
    </div>
  );
}

function whereOf({ left, right }: DiffBlock): string {
  if (left === null) return `message ${right ?? 0}, only in the other`;
  if (right === null) return `message ${left}, only in this one`;
  return left === right ? `message ${left}` : `message ${left} here, ${right} there`;
}

const Block = memo(function Block({ block, inline, until, at }: { block: DiffBlock; inline: boolean; until: number; at: number | null }) {
  return (
    <section className={css["block"]} data-channel={block.channel}>
      <h3 className={css["channel"]}>
        {CHANNELS[block.channel] ?? block.channel} <span>{whereOf(block)}</span>
      </h3>
      {block.rows.map((row, i) =>
        row.change !== null && row.change > until ? null : (
          <Row key={i} row={row} inline={inline} isNow={at !== null && row.change === at} isFirst={i === 0} isLast={i === block.rows.length - 1} />
        ),
      )}
    </section>
  );
});

interface RowProps {
  row: DiffRow;
  inline: boolean;
  isNow: boolean;
  isFirst: boolean;
  isLast: boolean;
}

const Row = memo(function Row({ row, inline, isNow, isFirst, isLast }: RowProps) {
  const { change, segments } = row;
  const edges = { head: !isFirst || change !== null, tail: !isLast || change !== null };
  if (change === null || inline) {
    return (
      <div className={css["row"]} data-change={change ?? undefined} aria-current={isNow}>
        {change === 0 && <p className={css["first"]}>First difference</p>}
        <Cell segments={segments} {...edges} />
      </div>
    );
  }
  return (
    <div className={`${css["row"] ?? ""} ${css["two"] ?? ""}`} data-change={change} aria-current={isNow}>
      {change === 0 && <p className={css["first"]}>First difference</p>}
      <Cell segments={segments.filter(({ kind }) => kind !== "added")} {...edges} />
      <Cell segments={segments.filter(({ kind }) => kind !== "removed")} {...edges} />
    </div>
  );
});
