/** The heads of the table: their order, widths and sorts. */

import { getCoreRowModel, useReactTable, type ColumnDef, type ColumnSizingState, type Header } from "@tanstack/react-table";
import { useMemo, useState } from "react";
import { useViewState } from "@/state/location";
import type { Column } from "./columns";
import { formatSort, parseSort } from "./sorts";

const STORED = "column-widths";
const WIDTH_MIN = 40;

/** Rows come page by page from the server; the table only keeps the columns. */
const NO_ROWS: never[] = [];

function stored(): ColumnSizingState {
  try {
    return JSON.parse(localStorage.getItem(STORED) ?? "{}") as ColumnSizingState;
  } catch {
    return {};
  }
}

export interface Heads {
  heads: Header<never, unknown>[];
  setWidth: (name: string, width: number) => void;
  /** For `grid-template-columns` of the head and of every row. */
  template: string;
  width: number;
}

export const MARK_PX = 44;

export function useHeads(columns: Column[]): Heads {
  const [{ sort }, set] = useViewState();
  const [columnSizing, setSizing] = useState(stored);
  const defs = useMemo<ColumnDef<never>[]>(
    () =>
      columns.map((column) => ({
        id: column.name,
        accessorFn: () => null,
        size: column.width,
        minSize: WIDTH_MIN,
        maxSize: 900,
        enableSorting: column.isSortable,
        // Numbers are asked for because of their highest, names in their order.
        sortDescFirst: column.isNumber && column.name !== "step",
        enableSortingRemoval: false,
      })),
    [columns],
  );
  const sorting = useMemo(() => parseSort(sort), [sort]);
  const keep = (next: ColumnSizingState) => {
    localStorage.setItem(STORED, JSON.stringify(next));
    return next;
  };
  // eslint-disable-next-line react-hooks/incompatible-library -- nothing here is memoised by a compiler
  const table = useReactTable<never>({
    data: NO_ROWS,
    columns: defs,
    state: { sorting, columnSizing },
    manualSorting: true,
    columnResizeMode: "onChange",
    onSortingChange: (change) => set({ sort: formatSort(typeof change === "function" ? change(sorting) : change) }),
    onColumnSizingChange: (change) => setSizing((old) => keep(typeof change === "function" ? change(old) : change)),
    getCoreRowModel: getCoreRowModel(),
  });
  const heads = table.getFlatHeaders();
  return {
    heads,
    setWidth: (name, width) => setSizing((old) => keep({ ...old, [name]: Math.max(WIDTH_MIN, width) })),
    template: `${MARK_PX}px ${heads.map((head) => `${head.getSize()}px`).join(" ")} minmax(0, 1fr)`,
    width: MARK_PX + table.getTotalSize(),
  };
}
