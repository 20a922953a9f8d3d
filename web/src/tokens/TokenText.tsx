import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, useEffect, useMemo, useRef } from "react";
import { lineOf, linesOf, type Line } from "./lines";
import { colourOf } from "./scale";
import { useWidth } from "./useWidth";
import { cells } from "./visible";
import type { Heat, Model } from "./model";
import css from "./Tokens.module.css";

const LINE = 24;
/** The pane's padding, the edge of a line and the bar that scrolls. */
const MARGIN = 40;
/** Width of a character of the monospace fonts, at 13 px; a little wide, so that a line never overflows. */
const CELL = 7.9;

interface Props {
  model: Model;
  heat: Heat;
  chosen: number | null;
  onChoose: (at: number) => void;
  onHover: (at: number | null) => void;
}

function placeOf(target: EventTarget): number | null {
  const at = target instanceof HTMLElement ? target.dataset["at"] : undefined;
  return at === undefined ? null : Number(at);
}

/** The tokens as they read. Only the lines in sight are drawn, so that 100,000 scroll as 100 do. */
export function TokenText({ model, heat, chosen, onChoose, onHover }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const columns = Math.max(8, Math.floor((useWidth(box) - MARGIN) / CELL));
  const lines = useMemo(
    () =>
      linesOf({
        length: model.length,
        promptLen: model.promptLen,
        columns,
        // Ids have no spaces of their own, so that one stands between them.
        width: (at) => cells(model.shown(at)) + (model.hasTexts ? 0 : 1),
        endsLine: (at) => model.hasTexts && model.shown(at).endsWith("⏎"),
      }),
    [model, columns],
  );
  // eslint-disable-next-line react-hooks/incompatible-library -- its functions are called in this render only
  const rows = useVirtualizer({ count: lines.length, getScrollElement: () => box.current, estimateSize: () => LINE, overscan: 12, scrollPaddingStart: 2 * LINE, scrollPaddingEnd: 2 * LINE });
  const scrollTo = useRef(rows.scrollToIndex);
  useEffect(() => {
    scrollTo.current = rows.scrollToIndex;
  });
  useEffect(() => {
    if (chosen !== null && lines.length > 0) scrollTo.current(lineOf(lines, chosen), { align: "auto" });
  }, [chosen, lines]);
  const move = (key: string): number | null => {
    const at = chosen ?? 0;
    const line = lineOf(lines, at);
    const below = (by: number) => {
      const next = lines[line + by];
      const here = lines[line];
      return next && here ? Math.min(next.to - 1, next.from + (at - here.from)) : null;
    };
    if (key === "ArrowRight") return chosen === null ? 0 : Math.min(model.length - 1, at + 1);
    if (key === "ArrowLeft") return Math.max(0, at - 1);
    if (key === "ArrowDown") return below(1);
    if (key === "ArrowUp") return below(-1);
    if (key === "Home") return 0;
    if (key === "End") return model.length - 1;
    return null;
  };
  return (
    <div
      ref={box}
      className={css["text"]}
      role="listbox"
      data-ids={!model.hasTexts}
      aria-label="Tokens in order"
      tabIndex={0}
      aria-activedescendant={chosen === null ? undefined : `token-${chosen}`}
      onMouseOver={(event) => onHover(placeOf(event.target))}
      onMouseLeave={() => onHover(null)}
      onClick={(event) => {
        const at = placeOf(event.target);
        if (at !== null) onChoose(at);
      }}
      onKeyDown={(event) => {
        const at = move(event.key);
        if (at === null) return;
        event.preventDefault();
        onChoose(at);
      }}
    >
      <div role="presentation" className={css["lines"]} style={{ height: rows.getTotalSize() }}>
        {rows.getVirtualItems().map(({ index, start }) => {
          const line = lines[index];
          if (!line) return null;
          const here = chosen !== null && chosen >= line.from && chosen < line.to ? chosen : null;
          return <TokenLine key={index} model={model} heat={heat} line={line} top={start} chosen={here} columns={columns} />;
        })}
      </div>
    </div>
  );
}

interface LineProps {
  model: Model;
  heat: Heat;
  line: Line;
  top: number;
  chosen: number | null;
  columns: number;
}

const TokenLine = memo(function TokenLine({ model, heat, line, top, chosen, columns }: LineProps) {
  const spans = [];
  for (let at = line.from; at < line.to; at++) {
    const token = model.token(at);
    const colour = colourOf(model, heat, token);
    const name = !token.isPrompt && !token.isTrained ? "untrained" : colour;
    const text = model.shown(at);
    spans.push(
      <span
        key={at}
        id={`token-${at}`}
        role="option"
        aria-selected={at === chosen}
        // A name made of spaces is none.
        aria-label={text.trim() === "" ? "space" : undefined}
        data-at={at}
        className={name === null ? css["token"] : `${css["token"] ?? ""} ${css[name] ?? ""}`}
      >
        {text.length > columns ? `${text.slice(0, columns - 1)}…` : text}
      </span>,
    );
  }
  return (
    <div role="presentation" className={css["line"]} data-part={line.isPrompt ? "prompt" : "response"} style={{ transform: `translateY(${top}px)` }}>
      {spans}
    </div>
  );
});
