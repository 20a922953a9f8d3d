import { memo, useMemo, useState } from "react";
import { counted } from "@/parts/numbers";
import { Piece, Text } from "@/text/Text";
import { segments, type Segment, type TextMark } from "@/text/segments";
import { jsonLines, type Cell, type Line } from "./json";
import css from "./Blocks.module.css";

interface Props {
  text: string;
  from: number;
  to: number;
  marks: readonly TextMark[];
}

/** With more lines than this the inner ones are folded at first. */
const LINES = 60;

/** JSON as a tree that folds; what only looks like JSON as it is. */
export const JsonBlock = memo(function JsonBlock({ text, from, to, marks }: Props) {
  const lines = useMemo(() => jsonLines(text, from, to), [text, from, to]);
  const [chosen, setChosen] = useState<ReadonlyMap<number, boolean>>(new Map());
  if (!lines) {
    return (
      <div className={css["mono"]} dir="auto">
        <Text text={text} from={from} to={to} marks={marks} />
      </div>
    );
  }
  const isFolded = (index: number, line: Line): boolean => {
    if (line.closes === null) return false;
    // What is looked for is never hidden.
    const start = line.cells[0]?.at ?? 0;
    const end = lines[line.closes]?.cells.at(-1)?.to ?? start;
    if (marks.some((mark) => mark.kind !== "found" && mark.from < end && mark.to > start)) return false;
    return chosen.get(index) ?? (lines.length > LINES && line.depth >= 2);
  };
  const rows = [];
  for (let index = 0; index < lines.length; index++) {
    const line = lines[index];
    if (!line) continue;
    const folded = isFolded(index, line);
    const last = folded && line.closes !== null ? lines[line.closes] : undefined;
    rows.push(
      <div key={index} className={css["line"]} style={{ paddingLeft: `${line.depth * 16 + 16}px` }}>
        {line.closes !== null && (
          <button
            type="button"
            className={css["twist"]}
            aria-expanded={!folded}
            aria-label={folded ? "Unfold" : "Fold"}
            style={{ left: `${line.depth * 16}px` }}
            onClick={() => setChosen((old) => new Map(old).set(index, !folded))}
          >
            {folded ? "▸" : "▾"}
          </button>
        )}
        <Cells cells={line.cells} text={text} marks={marks} />
        {folded && <span className={css["folded"]}> {counted(line.entries + 1, "entry", "entries")} </span>}
        {last && <Cells cells={last.cells} text={text} marks={marks} />}
      </div>,
    );
    if (folded && line.closes !== null) index = line.closes;
  }
  return (
    <div className={css["mono"]} dir="auto">
      {rows}
    </div>
  );
});

function Cells({ cells, text, marks }: { cells: readonly Cell[]; text: string; marks: readonly TextMark[] }) {
  return cells.map((cell, i) => (
    <span key={i} className={css[cell.kind]}>
      {segmentsOf(cell, text, marks).map((segment) => (
        <Piece key={segment.at} segment={segment} />
      ))}
    </span>
  ));
}

function segmentsOf(cell: Cell, text: string, marks: readonly TextMark[]): Segment[] {
  if (cell.shown === null) return segments(text, cell.at, cell.to, marks);
  const kinds = marks.filter((mark) => mark.from <= cell.at && mark.to >= cell.to && cell.to > cell.at).map((mark) => mark.kind);
  return [{ text: cell.shown, at: cell.at, length: cell.to - cell.at, kinds, label: undefined, odd: undefined }];
}
