import { useMemo, useRef } from "react";
import { count, figure } from "@/parts/numbers";
import { useWidth } from "./useWidth";
import { entropyStep, logprobStep } from "./scale";
import { bucketsOf, type Bucket } from "./strip";
import type { Heat, Model } from "./model";
import css from "./Tokens.module.css";

interface Props {
  model: Model;
  heat: Heat;
  chosen: number | null;
  onChoose: (at: number) => void;
}

/** A log-prob or entropy beyond it is as bad as it gets. */
const FULL = 8;
const COLUMN = 3;

const entropyOf = (model: Model) => (at: number) => model.token(at).entropy;
/** The log-prob of what was not sampled says nothing. */
const surpriseOf = (model: Model) => (at: number) => {
  const { logprob, isTrained } = model.token(at);
  return logprob === null || !isTrained ? null : -logprob;
};

/** One shape for each colour, whatever the number of columns. */
function shapes(buckets: Bucket[], stepOf: (value: number) => number): string[] {
  const paths = ["", "", "", "", ""];
  buckets.forEach(({ value }, i) => {
    if (value === null) return;
    const high = Math.max(0.04, Math.min(1, value / FULL));
    const step = stepOf(value);
    paths[step] = `${paths[step] ?? ""}M${i} 1V${(1 - high).toFixed(3)}H${i + 1}V1Z`;
  });
  return paths;
}

/** The whole rollout at a glance: where it was unsure. A click, or the arrows, go there. */
export function Strip({ model, heat, chosen, onChoose }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const byEntropy = heat === "entropy" && model.has.entropy;
  const columns = Math.max(1, Math.floor(width / COLUMN));
  const buckets = useMemo(() => bucketsOf(model.length, columns, byEntropy ? entropyOf(model) : surpriseOf(model)), [model, columns, byEntropy]);
  const paths = useMemo(() => shapes(buckets, byEntropy ? entropyStep : (value) => logprobStep(-value)), [buckets, byEntropy]);
  const now = chosen === null ? -1 : buckets.findIndex(({ from, to }) => chosen >= from && chosen < to);
  const go = (to: number) => {
    const bucket = buckets[Math.min(buckets.length - 1, Math.max(0, to))];
    if (bucket) onChoose(bucket.at ?? bucket.from);
  };
  return (
    <div
      ref={box}
      className={css["strip"]}
      role="slider"
      tabIndex={0}
      aria-label={byEntropy ? "Highest entropy along the tokens" : "Lowest log-prob along the tokens"}
      aria-valuemin={0}
      aria-valuemax={model.length - 1}
      aria-valuenow={chosen ?? 0}
      aria-valuetext={chosen === null ? "no token chosen" : `token ${count(chosen)}, ${byEntropy ? "entropy" : "log-prob"} ${figure(byEntropy ? model.token(chosen).entropy : model.token(chosen).logprob)}`}
      title={byEntropy ? "Highest entropy along the tokens; click to go there" : "Lowest log-prob along the tokens; click to go there"}
      onClick={(event) => {
        const { left, width: full } = event.currentTarget.getBoundingClientRect();
        go(Math.floor(((event.clientX - left) / full) * buckets.length));
      }}
      onKeyDown={(event) => {
        const by = { ArrowRight: 1, ArrowLeft: -1, PageDown: 10, PageUp: -10 }[event.key];
        if (by === undefined) return;
        event.preventDefault();
        go(now + by);
      }}
    >
      <svg viewBox={`0 0 ${buckets.length} 1`} preserveAspectRatio="none" aria-hidden="true">
        {paths.map((path, i) => (
          <path key={i} d={path} className={css[`bar${i}`]} />
        ))}
        {model.promptLen > 0 && <rect className={css["promptPart"]} x={0} y={0} width={(buckets.length * model.promptLen) / model.length} height={1} />}
        {now >= 0 && <rect className={css["now"]} x={now} y={0} width={1} height={1} />}
      </svg>
    </div>
  );
}
