import { lazy, memo, Suspense, useMemo } from "react";
import { Piece, Text } from "@/text/Text";
import { segments, type TextMark } from "@/text/segments";
import type { Part } from "./parts";
import type { Drawn } from "./rows";
import { JsonBlock } from "./JsonBlock";
import { runs, type Run } from "./terminal";
import css from "./Blocks.module.css";

const Markdown = lazy(() => import("./Markdown"));

interface Props {
  part: Part;
  from: number;
  to: number;
  drawn: Drawn;
  marks: readonly TextMark[];
}

/** A stretch of a part's text. Each is a world of its own: no direction leaks out of it. */
export const Block = memo(function Block({ part, from, to, drawn, marks }: Props) {
  const { text } = part;
  // The line's end between two stretches is already there: they stand one under the other.
  const end = to < text.length && text[to - 1] === "\n" ? to - 1 : to;
  const plain = <Text text={text} from={from} to={end} marks={marks} />;
  if (drawn === "json") return <JsonBlock text={text} from={from} to={to} marks={marks} />;
  if (drawn === "terminal") return <Terminal part={part} from={from} to={end} marks={marks} />;
  if (drawn === "markdown") {
    const waiting = (
      <div className={css["plain"]} dir="auto">
        {plain}
      </div>
    );
    return (
      <div className={css["prose"]} dir="auto">
        <Suspense fallback={waiting}>
          <Markdown text={text} from={from} to={to} marks={marks} />
        </Suspense>
      </div>
    );
  }
  return (
    <div className={css[drawn]} dir="auto">
      {plain}
    </div>
  );
});

const known = new WeakMap<Part, Run[]>();

/** Colours go on from one stretch to the next, so they are found once for the whole text. */
function runsOf(part: Part): Run[] {
  const found = known.get(part) ?? runs(part.text);
  known.set(part, found);
  return found;
}

function Terminal({ part, from, to, marks }: Omit<Props, "drawn">) {
  const here = useMemo(() => runsOf(part).filter((run) => run.from < to && run.to > from), [part, from, to]);
  return (
    <div className={css["mono"]} dir="auto">
      {here.map((run) => (
        <span key={run.from} className={css["run"]} data-colour={run.colour} data-bold={run.bold} data-dim={run.dim} data-underline={run.underline} data-inverse={run.inverse}>
          {segments(part.text, Math.max(from, run.from), Math.min(to, run.to), marks).map((segment) => (
            <Piece key={segment.at} segment={segment} />
          ))}
        </span>
      ))}
    </div>
  );
}
