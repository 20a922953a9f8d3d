import { useState, type DragEvent, type KeyboardEvent } from "react";
import { Button } from "@/parts/Button";
import { DropUp } from "@/parts/DropUp";
import { useViewState } from "@/state/location";
import type { Column, Columns } from "./columns";
import css from "./ColumnChooser.module.css";

/** All columns with what they mean: which are shown, and in which order. */
export function ColumnChooser({ columns }: { columns: Columns }) {
  return (
    <DropUp label="Choose columns" hotkey="c" keyGroup="Rows" name="Columns">
      <Chooser columns={columns} />
    </DropUp>
  );
}

function moved(names: string[], name: string, to: number): string[] {
  const rest = names.filter((other) => other !== name);
  return [...rest.slice(0, to), name, ...rest.slice(to)];
}

function Chooser({ columns: { all, chosen, usual } }: { columns: Columns }) {
  const [state, set] = useViewState();
  const [wanted, setWanted] = useState("");
  const names = chosen.map((column) => column.name);
  const put = (next: string[]) => set({ columns: next.join() === usual.join() ? null : next }, "replace");
  const word = wanted.trim().toLowerCase();
  const fits = ({ name, label, about }: Column) => `${name} ${label} ${about}`.toLowerCase().includes(word);
  const rest = [...all.values()].filter((column) => !names.includes(column.name));
  const [shownChosen, shownRest] = [chosen.filter(fits), rest.filter(fits)];

  const onKey = (event: KeyboardEvent, name: string) => {
    const by = event.key === "ArrowUp" ? -1 : event.key === "ArrowDown" ? 1 : 0;
    const at = names.indexOf(name);
    if (!event.altKey || by === 0 || at < 0) return;
    event.preventDefault();
    put(moved(names, name, Math.max(0, at + by)));
  };
  const onDrop = (event: DragEvent, onto: string) => {
    event.preventDefault();
    const name = event.dataTransfer.getData("text/plain");
    if (names.includes(name)) put(moved(names, name, names.indexOf(onto)));
  };
  const item = (column: Column, isChosen: boolean) => (
    <li
      key={column.name}
      className={css["item"]}
      draggable={isChosen}
      onDragStart={(event) => event.dataTransfer.setData("text/plain", column.name)}
      onDragOver={(event) => isChosen && event.preventDefault()}
      onDrop={(event) => isChosen && onDrop(event, column.name)}
    >
      <label className={css["label"]} title={column.about}>
        <input
          type="checkbox"
          checked={isChosen}
          // The last one stays: a table without columns shows nothing that could be clicked.
          disabled={isChosen && names.length === 1}
          onChange={() => put(isChosen ? names.filter((name) => name !== column.name) : [...names, column.name])}
          onKeyDown={(event) => onKey(event, column.name)}
        />
        <span className={css["name"]}>{column.name}</span>
        <span className={css["about"]}>{column.about}</span>
      </label>
    </li>
  );
  return (
    <>
      <div className={css["top"]}>
        <input type="search" data-first className={css["filter"]} placeholder="Find a column" aria-label="Find a column" value={wanted} onChange={(event) => setWanted(event.target.value)} />
        <Button label="Show the usual columns" disabled={state.columns === null} onClick={() => set({ columns: null }, "replace")}>
          Usual
        </Button>
      </div>
      <div className={css["lists"]}>
        {shownChosen.length > 0 && (
          <>
            <p className={css["heading"]}>Shown, in this order; drag, or Alt and an arrow, moves one</p>
            <ul aria-label="Shown columns">{shownChosen.map((column) => item(column, true))}</ul>
          </>
        )}
        {shownRest.length > 0 && (
          <>
            <p className={css["heading"]}>Not shown</p>
            <ul aria-label="Other columns">{shownRest.map((column) => item(column, false))}</ul>
          </>
        )}
        {shownChosen.length + shownRest.length === 0 && <p className={css["heading"]}>No column is called that, or is about it.</p>}
      </div>
    </>
  );
}
