/** All rows of the filter, however many: the middle of the page. */

import { useEffect, useMemo, useRef, useState, type KeyboardEvent } from "react";
import { useView } from "@/api/view";
import { ExportMenu } from "@/export/ExportMenu";
import { useKey } from "@/keys/keys";
import { useLate } from "@/parts/useLate";
import { useViewState } from "@/state/location";
import { Follow, Waiting } from "@/tail/Follow";
import { useTail } from "@/tail/useTail";
import { ColumnChooser } from "./ColumnChooser";
import { neededBy, useColumns, useRewardRange } from "./columns";
import { Empty } from "./Empty";
import { Footer } from "./Footer";
import { Head } from "./Head";
import { formatSort, parseSort } from "./sorts";
import { rowId, TableRow } from "./TableRow";
import { useCursor } from "./useCursor";
import { useHeads } from "./useHeads";
import { useMarking } from "./useMarking";
import { useMarks } from "./useMarks";
import { usePages } from "./usePages";
import { BEYOND, useWindow } from "./useWindow";
import css from "./Rows.module.css";

export function Rows() {
  const { key: view, filter, filterError } = useView();
  const [{ sort: text, follow, rollout }] = useViewState();
  const columns = useColumns();
  // The groups may be sorted by what rows do not have.
  const sort = formatSort(parseSort(text).filter(({ id }) => columns.all.get(id)?.isSortable));
  const range = useRewardRange();
  const { heads, template, width, setWidth } = useHeads(columns.chosen);
  const needed = neededBy(columns.chosen);
  const question = useMemo(() => ({ filter, sort, columns: needed }), [filter, sort, needed]);

  // What is in sight depends on how many there are, and which are asked for on what is in sight.
  const [total, setTotal] = useState(0);
  const [scroller, seen] = useWindow(total);
  const pages = usePages({ question, first: seen.first, last: seen.last, isReversed: follow && sort === "" });
  if (pages.total !== undefined && pages.total !== total) setTotal(pages.total);
  const marks = useMarks(pages.ids);

  const [isPaused, setPaused] = useState(false);
  const tail = useTail({ isOn: follow, isHeld: isPaused || !seen.isAtTop });
  const takeNew = () => {
    setPaused(false);
    seen.toTop();
    tail.take();
  };

  const { reveal, toTop } = seen;
  const first = Math.min(seen.first === 0 ? 0 : seen.first + BEYOND, total);
  const last = Math.min(total, first + seen.rowsInSight);
  const cursor = useCursor({ pages, firstInSight: first, reveal });
  const marking = useMarking({ view, pages, cursor: cursor.index });

  // Another question begins at its top; more columns do not.
  const asked = `${pages.shown.filter}\n${pages.shown.sort}\n${follow}`;
  const before = useRef(asked);
  useEffect(() => {
    if (before.current !== asked) toTop();
    before.current = asked;
  }, [asked, toTop]);
  // Keys that belong to others may have chosen a row that is out of sight.
  const chosen = useRef(cursor.index);
  useEffect(() => {
    chosen.current = cursor.index;
  });
  useEffect(() => {
    if (rollout !== null && chosen.current !== undefined) reveal(chosen.current);
  }, [rollout, reveal]);

  const onKey = (event: KeyboardEvent) => {
    if (event.target !== scroller.current || event.altKey || event.ctrlKey || event.metaKey) return;
    const { move, open } = cursor;
    const run = {
      ArrowDown: () => move(1),
      ArrowUp: () => move(-1),
      PageDown: () => move(seen.rowsInSight - 1),
      PageUp: () => move(1 - seen.rowsInSight),
      Home: () => total > 0 && open(0, "replace"),
      End: () => total > 0 && open(total - 1, "replace"),
      Enter: () => total > 0 && open(cursor.index ?? first),
      " ": marking.toggleCursor,
    }[event.key];
    if (!run) return;
    event.preventDefault();
    run();
  };
  useKey({ keys: "a", label: "Go to the rows", group: "Rows", run: () => scroller.current?.focus() });

  const isRefused = filterError !== null || (pages.isOld && pages.error !== null);
  const isLate = useLate(pages.total === undefined && pages.error === null);
  const drawn = [];
  for (let index = seen.first; index < Math.min(seen.last, total); index++) drawn.push(index);
  return (
    <div className={css["table"]}>
      <div
        ref={scroller}
        role="grid"
        aria-label="Rows"
        aria-rowcount={total + 1}
        aria-colcount={heads.length + 1}
        aria-multiselectable="true"
        aria-activedescendant={cursor.index !== undefined && cursor.index >= seen.first && cursor.index < seen.last ? rowId(cursor.index) : undefined}
        aria-busy={pages.total === undefined}
        tabIndex={0}
        className={css["grid"]}
        data-old={isRefused}
        style={{ "--columns": template, "--width": `${width}px` } as React.CSSProperties}
        onKeyDown={onKey}
      >
        <div role="row" aria-rowindex={1} className={css["heads"]}>
          <div role="columnheader" aria-colindex={1} aria-label="Marked" />
          {heads.map((head, at) => {
            const column = columns.all.get(head.id);
            return column && <Head key={head.id} head={head} column={column} index={at} onWidth={(next) => setWidth(head.id, next)} />;
          })}
        </div>
        <div role="rowgroup" className={css["body"]} style={{ height: seen.height }}>
          <div role="presentation" className={css["drawn"]} style={{ transform: `translateY(${seen.y}px)` }}>
            {drawn.map((index) => {
              const row = pages.row(index);
              return (
                <TableRow
                  key={index}
                  index={index}
                  row={row}
                  columns={columns.chosen}
                  range={range}
                  isChosen={row !== undefined && row.id === rollout}
                  isMarked={row !== undefined && marking.ids.has(row.id)}
                  isFresh={row !== undefined && tail.fresh.has(row.id)}
                  mark={row && marks[row.id]}
                  onOpen={cursor.open}
                  onMark={marking.mark}
                />
              );
            })}
          </div>
        </div>
      </div>
      <Waiting count={tail.waiting} onTake={takeNew} />
      {isLate && <Empty why="loading" />}
      {pages.total === undefined && pages.error && <Empty why={pages.error} />}
      {pages.total === 0 && !pages.isOld && <Empty why="nothing" />}
      {isRefused && (
        <p className={css["note"]} role="status">
          These are the rows of the last filter that worked.
        </p>
      )}
      <Footer total={pages.total} first={first} last={last} selected={marking.ids.size} onClear={marking.clear} filter={pages.shown.filter}>
        <Follow tail={tail} isPaused={isPaused} isAway={!seen.isAtTop} onPause={setPaused} />
        <ColumnChooser columns={columns} />
        <ExportMenu selected={marking.ids} total={total} filter={pages.shown.filter} sort={pages.shown.sort} columns={needed.split(",")} />
      </Footer>
    </div>
  );
}
