/** The groups of the filter: which of them have something to learn from. */

import { useCallback, useMemo, useState, type KeyboardEvent } from "react";
import { useView } from "@/api/view";
import { useKey } from "@/keys/keys";
import { Button } from "@/parts/Button";
import { count, counted } from "@/parts/numbers";
import { useLate } from "@/parts/useLate";
import { toggled, useViewState } from "@/state/location";
import { useRewardRange } from "@/table/columns";
import { Empty } from "@/table/Empty";
import { formatSort, parseSort, turned } from "@/table/sorts";
import { useWindow } from "@/table/useWindow";
import { COLUMNS, TEMPLATE, WIDTH_PX } from "./columns";
import { GroupRow, groupRowId } from "./GroupRow";
import { useGroups } from "./useGroups";
import css from "./Groups.module.css";

const DEAD = "dead_group == true";

export function Groups() {
  const { filter, filterError } = useView();
  const [{ sort: text, clauses, rollout }, set] = useViewState();
  const range = useRewardRange();
  // The rows may be sorted by what groups do not have.
  const sorts = useMemo(() => parseSort(text).filter(({ id }) => COLUMNS.some((column) => column.name === id)), [text]);
  const question = useMemo(() => ({ filter, sort: formatSort(sorts) }), [filter, sorts]);
  const [total, setTotal] = useState(0);
  const [scroller, seen] = useWindow(total);
  const groups = useGroups(question, seen.first, seen.last);
  if (groups.total !== undefined && groups.total !== total) setTotal(groups.total);
  const [cursor, setCursor] = useState<number | null>(null);
  const isRefused = filterError !== null || (groups.isOld && groups.error !== null);
  const isLate = useLate(groups.total === undefined && groups.error === null);

  const { group: groupAt } = groups;
  const { reveal } = seen;
  const open = useCallback(
    (index: number, how: "push" | "replace" = "push") => {
      const group = groupAt(index);
      setCursor(index);
      reveal(index);
      if (group) set({ rollout: group.first, tab: "group", message: null, range: null, other: null }, how);
    },
    [groupAt, reveal, set],
  );
  const move = (by: number) => {
    if (total === 0) return;
    open(cursor === null ? 0 : Math.min(Math.max(0, cursor + by), total - 1), "replace");
  };
  const showDead = () => set({ clauses: toggled(clauses, DEAD) });
  useKey({ keys: "j", label: "Next group", group: "Groups", run: () => move(1) });
  useKey({ keys: "k", label: "Group before", group: "Groups", run: () => move(-1) });
  useKey({ keys: "a", label: "Go to the groups", group: "Groups", run: () => scroller.current?.focus() });

  const onKey = (event: KeyboardEvent) => {
    if (event.target !== event.currentTarget || event.altKey || event.ctrlKey || event.metaKey) return;
    const run = {
      ArrowDown: () => move(1),
      ArrowUp: () => move(-1),
      PageDown: () => move(seen.rowsInSight - 1),
      PageUp: () => move(1 - seen.rowsInSight),
      Home: () => move(-total),
      End: () => move(total),
      Enter: () => total > 0 && open(cursor ?? 0),
    }[event.key];
    if (!run) return;
    event.preventDefault();
    run();
  };

  const drawn = [];
  for (let index = seen.first; index < Math.min(seen.last, total); index++) drawn.push(index);
  return (
    <div className={css["table"]}>
      <div
        ref={scroller}
        role="grid"
        aria-label="Groups"
        aria-rowcount={total + 1}
        aria-colcount={COLUMNS.length}
        aria-activedescendant={cursor !== null && cursor >= seen.first && cursor < seen.last ? groupRowId(cursor) : undefined}
        tabIndex={0}
        className={css["grid"]}
        data-old={isRefused}
        style={{ "--columns": TEMPLATE, "--width": `${WIDTH_PX}px` } as React.CSSProperties}
        onKeyDown={onKey}
      >
        <div role="row" aria-rowindex={1} className={css["heads"]}>
          {COLUMNS.map((column, at) => {
            const now = sorts.find((one) => one.id === column.name);
            const options = { descFirst: column.isNumber && column.name !== "step" };
            return (
              <div key={column.name} role="columnheader" aria-colindex={at + 1} aria-sort={now ? (now.desc ? "descending" : "ascending") : "none"} className={css["head"]} data-number={column.isNumber}>
                <button
                  type="button"
                  className={css["sort"]}
                  title={`${column.about}\nClick to sort, Shift-click to sort by it as well`}
                  onClick={(event) => set({ sort: formatSort(turned(sorts, column.name, { ...options, isMore: event.shiftKey })) })}
                >
                  {column.label}
                  {now && <span className={css["arrow"]} aria-hidden="true">{now.desc ? "↓" : "↑"}</span>}
                </button>
              </div>
            );
          })}
        </div>
        <div role="rowgroup" className={css["body"]} style={{ height: seen.height }}>
          <div role="presentation" className={css["drawn"]} style={{ transform: `translateY(${seen.y}px)` }}>
            {drawn.map((index) => {
              const group = groups.group(index);
              return <GroupRow key={index} index={index} group={group} range={range} isChosen={cursor === index || (group !== undefined && group.first === rollout)} onOpen={open} />;
            })}
          </div>
        </div>
      </div>
      {isLate && <Empty why="loading" what="group" />}
      {groups.total === undefined && groups.error && <Empty why={groups.error} what="group" />}
      {groups.total === 0 && !groups.isOld && <Empty why="nothing" what="group" />}
      {isRefused && (
        <p className={css["note"]} role="status">
          These are the groups of the last filter that worked.
        </p>
      )}
      <footer className={css["footer"]}>
        <span role="status">{groups.total !== undefined && counted(groups.total, "group")}</span>
        {groups.total !== undefined && seen.last > 0 && <span className={css["muted"]}>{count(Math.min(total, seen.first + 1))}–{count(Math.min(total, seen.last))}</span>}
        <span className={css["space"]} />
        <Button label="Only groups without a gradient" hotkey="Shift+O" keyGroup="Groups" kind="quiet" pressed={clauses.includes(DEAD)} onClick={showDead}>
          Dead only
        </Button>
      </footer>
    </div>
  );
}
