import type { Header } from "@tanstack/react-table";
import type { Column } from "./columns";
import css from "./Rows.module.css";

interface Props {
  column: Column;
  head: Header<never, unknown>;
  index: number;
  onWidth: (width: number) => void;
}

/** A head sorts by a click, turns by another, adds its sort with Shift, and is made wider at its right edge. */
export function Head({ column, head, index, onWidth }: Props) {
  const sorted = head.column.getIsSorted();
  const place = head.column.getSortIndex();
  const isOneOfMany = head.getContext().table.getState().sorting.length > 1;
  const width = head.getSize();
  return (
    <div
      role="columnheader"
      aria-colindex={index + 2}
      aria-sort={sorted === "asc" ? "ascending" : sorted === "desc" ? "descending" : column.isSortable ? "none" : undefined}
      className={css["head"]}
      data-number={column.isNumber}
    >
      {column.isSortable ? (
        <button
          type="button"
          className={css["sort"]}
          title={`${column.name}: ${column.about}\nClick to sort, Shift-click to sort by it as well`}
          onClick={head.column.getToggleSortingHandler()}
        >
          <span className={css["label"]}>{column.label}</span>
          {sorted !== false && (
            <span className={css["arrow"]} aria-hidden="true">
              {sorted === "asc" ? "↑" : "↓"}
              {isOneOfMany && place + 1}
            </span>
          )}
        </button>
      ) : (
        <span className={css["label"]} title={column.about}>
          {column.label}
        </span>
      )}
      <div
        role="separator"
        aria-orientation="vertical"
        aria-label={`Width of ${column.label}`}
        aria-valuenow={width}
        aria-valuemin={40}
        aria-valuemax={900}
        tabIndex={0}
        className={css["edge"]}
        onMouseDown={head.getResizeHandler()}
        onTouchStart={head.getResizeHandler()}
        onDoubleClick={() => onWidth(column.width)}
        onKeyDown={(event) => {
          const by = event.key === "ArrowRight" ? 16 : event.key === "ArrowLeft" ? -16 : 0;
          if (by === 0) return;
          event.preventDefault();
          event.stopPropagation();
          onWidth(width + by);
        }}
      />
    </div>
  );
}
