import { bytes } from "@/parts/numbers";
import type { Entry } from "./entries";
import css from "./Browser.module.css";

interface Props {
  id: string;
  index: number;
  top: number;
  entry: Entry;
  within: string | null;
  isActive: boolean;
  isSelected: boolean;
  isMarked: boolean;
  onToggle: () => void;
  onMark: () => void;
  onEnter: () => void;
}

const when = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "short", hourCycle: "h23" });

function nameOf({ place, kind }: Entry, within: string | null): string {
  if (place.startsWith("yard://")) return place;
  const cut = place.replace(/\/+$/, "");
  const name = within !== null && cut.startsWith(within) ? cut.slice(within.length).replace(/^\/+/, "") : cut.slice(cut.lastIndexOf("/") + 1);
  return (name || place) + (kind === "folder" ? "/" : "");
}

export function FileLine(props: Props) {
  const { id, index, top, entry, within, isActive, isSelected, isMarked, onToggle, onMark, onEnter } = props;
  const name = nameOf(entry, within);
  return (
    <div
      id={id}
      role="row"
      aria-rowindex={index + 1}
      aria-selected={isSelected}
      className={css["line"]}
      data-active={isActive}
      style={{ transform: `translateY(${top}px)` }}
      title={entry.place}
      onClick={onEnter}
    >
      <span role="gridcell" onClick={(event) => event.stopPropagation()}>
        <input type="checkbox" tabIndex={-1} checked={isSelected} aria-label={`Select ${name}`} onChange={onToggle} />
      </span>
      <span role="gridcell" className={css["file"]} data-kind={entry.kind}>
        {name}
      </span>
      <span role="gridcell" className={css["number"]}>
        {entry.size === null ? "" : bytes(entry.size)}
      </span>
      <span role="gridcell" className={css["number"]}>
        {entry.time === null ? "" : when.format(entry.time)}
      </span>
      <span role="gridcell">
        <button
          type="button"
          tabIndex={-1}
          className={css["star"]}
          aria-pressed={isMarked}
          aria-label={`Mark ${name}`}
          title="Mark it: it stands first from now on (m)"
          onClick={(event) => {
            event.stopPropagation();
            onMark();
          }}
        >
          {isMarked ? "★" : "☆"}
        </button>
      </span>
    </div>
  );
}
