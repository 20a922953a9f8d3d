import { memo, type MouseEvent } from "react";
import { Cell } from "./Cell";
import type { Column, RewardRange } from "./columns";
import type { Mark } from "./useMarks";
import type { Row } from "./usePages";
import css from "./Rows.module.css";

interface Props {
  row: Row | undefined;
  index: number;
  columns: Column[];
  range: RewardRange;
  isChosen: boolean;
  isMarked: boolean;
  isFresh: boolean;
  mark: Mark | undefined;
  onOpen: (index: number) => void;
  /** Marks it, or with Shift all from the last one to here. */
  onMark: (index: number, isRange: boolean) => void;
}

export const rowId = (index: number) => `row-${index}`;

function Drawn(props: Props) {
  const { row, index, columns, range, isChosen, isMarked, isFresh, mark, onOpen, onMark } = props;
  const onClick = (event: MouseEvent) => {
    if (event.shiftKey || event.metaKey || event.ctrlKey) onMark(index, event.shiftKey);
    else onOpen(index);
  };
  return (
    <div
      role="row"
      id={rowId(index)}
      aria-rowindex={index + 2}
      aria-selected={isChosen}
      aria-busy={row === undefined}
      className={css["row"]}
      data-id={row?.id}
      data-chosen={isChosen}
      data-marked={isMarked}
      data-fresh={isFresh}
      onClick={onClick}
    >
      <div role="gridcell" aria-colindex={1} className={css["mark"]}>
        {row && (
          <input
            type="checkbox"
            tabIndex={-1}
            aria-label={`Mark row ${index + 1}`}
            checked={isMarked}
            readOnly
            onClick={(event) => {
              event.stopPropagation();
              onMark(index, event.shiftKey);
            }}
          />
        )}
        {mark && <Said mark={mark} />}
      </div>
      {columns.map((column, at) => (
        <div key={column.name} role="gridcell" aria-colindex={at + 2} className={css["cell"]} data-number={column.isNumber}>
          {row ? <Cell column={column} row={row} range={range} /> : <span className={css["waiting"]} />}
        </div>
      ))}
    </div>
  );
}

/** The values of a row are the same object until one of them changes. */
export const TableRow = memo(Drawn, (old, next) => {
  const { row: before, ...rest } = old;
  const { row: after, ...others } = next;
  if (before?.id !== after?.id || before?.values !== after?.values) return false;
  return (Object.keys(rest) as (keyof typeof rest)[]).every((name) => rest[name] === others[name]);
});

const VERDICTS: Record<string, string> = { good: "+", bad: "−" };

function Said({ mark }: { mark: Mark }) {
  const verdict = mark.verdict ?? null;
  const grades = Object.entries(mark.grades).map(([metric, score]) => `${metric} ${JSON.stringify(score)}`);
  const said = [
    verdict === null ? "" : `verdict: ${verdict}`,
    mark.tags.length > 0 ? `tags: ${mark.tags.join(", ")}` : "",
    mark.comments > 0 ? `comments: ${mark.comments}` : "",
    grades.length > 0 ? `grades: ${grades.join(", ")}` : "",
  ].filter(Boolean);
  const sign = verdict !== null ? (VERDICTS[verdict] ?? "•") : mark.tags.length > 0 ? "#" : mark.comments > 0 ? "“" : "•";
  return (
    <span className={css["said"]} data-verdict={verdict} title={said.join("\n")} role="img" aria-label={said.join("; ")}>
      {sign}
    </span>
  );
}
