import { useState } from "react";
import { ErrorNotice } from "@/parts/Notice";
import { bytes, counted } from "@/parts/numbers";
import { Button } from "@/parts/Button";
import { useLate } from "@/parts/useLate";
import { useKept } from "@/state/kept";
import { useSettled } from "@/filter/useSettled";
import { entries, type Entry, type Order } from "./entries";
import { FileList } from "./FileList";
import { above, MARKED, shortName } from "./places";
import { useBrowse } from "./useBrowse";
import css from "./Browser.module.css";

interface Props {
  /** Where it begins; the roots where nothing is given. */
  start?: string | null;
  onOpen: (places: string[]) => void;
  /** Where something is open already, to which more can be added. */
  onAdd?: (places: string[]) => void;
}

/** Folders and buckets that the server may show, and what is in them. */
export function Browser({ start = null, onOpen, onAdd }: Props) {
  const [place, setPlace] = useState(start);
  const [moved, setMoved] = useState(false);
  const [recursive, setRecursive] = useState(false);
  const [name, setName] = useState("");
  const [order, setOrder] = useKept<Order>("browse-order", "name");
  const [marked, setMarked] = useKept<string[]>(MARKED, []);
  const [selected, setSelected] = useState<ReadonlyMap<string, Entry>>(new Map());
  const roots = useBrowse(null).data?.folders ?? [];
  const listing = useBrowse(place, { recursive: recursive && place !== null, name: useSettled(name.trim(), 200) });
  const late = useLate(listing.isPending);
  const shown = listing.data ? entries(listing.data, order, marked) : [];
  const visit = (next: string | null) => {
    setMoved(true);
    setPlace(next);
    setName("");
  };
  const toggle = (entry: Entry) => {
    const next = new Map(selected);
    if (!next.delete(entry.place)) next.set(entry.place, entry);
    setSelected(next);
  };
  const mark = (entry: Entry) => setMarked(marked.includes(entry.place) ? marked.filter((other) => other !== entry.place) : [...marked, entry.place]);
  const chosen = [...selected.keys()];
  const size = [...selected.values()].reduce((sum, entry) => sum + (entry.size ?? 0), 0);
  const up = place === null ? null : above(place, roots);
  return (
    <div className={css["browser"]}>
      <div className={css["bar"]}>
        <Button label="To the folder above" kind="plain" disabled={place === null} onClick={() => visit(up)}>
          ↑
        </Button>
        <span className={css["place"]} title={place ?? undefined}>
          {place ?? "What this server may show"}
        </span>
        <input className={css["name"]} type="search" aria-label="Only names with" placeholder="Only names with…" value={name} disabled={place === null} onChange={(event) => setName(event.target.value)} />
        <label className={css["deep"]}>
          <input type="checkbox" checked={recursive} disabled={place === null} onChange={(event) => setRecursive(event.target.checked)} />
          Folders below too
        </label>
        <select aria-label="Order" value={order} onChange={(event) => setOrder(event.target.value as Order)}>
          <option value="name">By name</option>
          <option value="size">Largest first</option>
          <option value="time">Newest first</option>
        </select>
      </div>
      {listing.error ? (
        <div className={css["instead"]}>
          <ErrorNotice error={listing.error} title={`${place === null ? "The roots" : shortName(place)} cannot be listed`}>
            {place !== null && <Button label="To the folder above" onClick={() => visit(up)} />}
          </ErrorNotice>
        </div>
      ) : listing.isPending ? (
        <p className={css["instead"]}>{late && "Looking…"}</p>
      ) : (
        <FileList
          entries={shown}
          within={place === null ? "" : recursive ? place : null}
          takesFocus={moved || onAdd !== undefined}
          selected={selected}
          marked={marked}
          onToggle={toggle}
          onMark={mark}
          onUp={() => place !== null && visit(up)}
          onEnter={(entry) => (entry.kind === "folder" && !entry.place.startsWith("yard://") ? visit(entry.place) : onOpen(chosen.length > 0 ? chosen : [entry.place]))}
        />
      )}
      <footer className={css["bar"]}>
        <span className={css["total"]}>
          {chosen.length > 0 ? `${counted(chosen.length, "place")} selected, ${bytes(size)} in files` : totals(shown.length, listing.data?.files.length ?? 0, listing.data?.size_bytes ?? 0)}
        </span>
        {chosen.length > 0 && <Button label="Select nothing" kind="quiet" onClick={() => setSelected(new Map())} />}
        {place !== null && chosen.length === 0 && <Button label="Open this folder" onClick={() => onOpen([place])} />}
        {onAdd && chosen.length > 0 && <Button label="Add to what is open" onClick={() => onAdd(chosen)} />}
        {chosen.length > 0 && (
          <Button label="Open" kind="primary" onClick={() => onOpen(chosen)}>
            Open {counted(chosen.length, "place")}
          </Button>
        )}
      </footer>
    </div>
  );
}

function totals(all: number, files: number, size: number): string {
  const folders = all - files;
  return [folders > 0 ? counted(folders, "folder") : "", files > 0 ? `${counted(files, "file")}, ${bytes(size)}` : ""].filter(Boolean).join(", ") || "Nothing here";
}
