import type { ReactNode } from "react";
import { api, ask } from "@/api/client";
import { useAsk, useView } from "@/api/view";
import { bytes, count, counted } from "@/parts/numbers";
import css from "./Footer.module.css";

interface Props {
  total: number | undefined;
  /** In sight, from and to, as counted from 0. */
  first: number;
  last: number;
  selected: number;
  onClear: () => void;
  filter: string;
  children: ReactNode;
}

/** How many rows there are, which of them are in sight, and what can be done with them. */
export function Footer({ total, first, last, selected, onClear, filter, children }: Props) {
  const { answer, isIndexing } = useView();
  const all = useAsk(["rows", "all"], (view) =>
    ask(api.GET("/api/view/{view}/rows", { params: { path: { view }, query: { columns: "step", limit: 1 } } })),
  ).data?.total;
  const { bytes_done, bytes: size } = answer.indexing;
  const isPart = filter !== "" && all !== undefined && total !== undefined;
  return (
    <footer className={css["footer"]}>
      <span className={css["said"]} role="status">
        {total !== undefined && <span>{isPart ? `${count(total)} of ${counted(all, "row")}` : counted(total, "row")}</span>}
        {isIndexing && <span className={css["muted"]}>still indexing: {bytes(bytes_done)} of {bytes(size)}</span>}
        {!isIndexing && selected === 0 && total !== undefined && last > first && (
          <span className={css["range"]}>
            {count(first + 1)}–{count(last)}
          </span>
        )}
      </span>
      {selected > 0 && (
        <button type="button" className={css["selected"]} title="Unmark all rows (Shift+U)" aria-label={`Unmark ${counted(selected, "row")}`} onClick={onClear}>
          {count(selected)} <span className={css["wide"]}>marked</span> ✕
        </button>
      )}
      <span className={css["space"]} />
      {children}
    </footer>
  );
}
