import { count } from "@/parts/numbers";
import css from "./Bars.module.css";

export interface Bar {
  /** Names the bar: a value, or a range. */
  label: string;
  count: number;
  colour?: string;
}

interface Props {
  label: string;
  bars: Bar[];
  height?: number;
  /** Ends of the axis below. */
  ends?: [string, string];
  /** Shows the rows of a bar. */
  onChoose?: ((index: number) => void) | undefined;
}

/** Standing bars, each of which opens the rows behind it. */
export function Bars({ label, bars, height = 120, ends, onChoose }: Props) {
  const most = Math.max(1, ...bars.map((bar) => bar.count));
  return (
    <figure className={css["bars"]} role="group" aria-label={label}>
      <div className={css["field"]} style={{ height }}>
        {bars.map((bar, i) => (
          <button
            key={bar.label}
            type="button"
            className={css["slot"]}
            title={`${bar.label}: ${count(bar.count)}`}
            aria-label={`${bar.label}: ${count(bar.count)}`}
            disabled={!onChoose || bar.count === 0}
            onClick={() => onChoose?.(i)}
          >
            <span style={{ height: `${(bar.count / most) * 100}%`, background: bar.colour ?? "var(--accent)", minHeight: bar.count > 0 ? 2 : 0 }} />
          </button>
        ))}
      </div>
      {ends && (
        <figcaption className={css["ends"]}>
          <span>{ends[0]}</span>
          <span>{count(most)} at most</span>
          <span>{ends[1]}</span>
        </figcaption>
      )}
    </figure>
  );
}
