import { useState, type PointerEvent } from "react";
import { counted, figure, rewardColour, share } from "@/parts/numbers";
import { isIn, rangeOf } from "./bins";
import type { Range } from "./choice";
import type { Histogram } from "./useHistogram";
import css from "./Brush.module.css";

interface Props {
  histogram: Histogram;
  range: Range | null;
  isInteger: boolean;
  /** Rewards have their own colours, the same everywhere. */
  isReward: boolean;
  onRange: (range: Range | null) => void;
}

/** Bars to draw a range over. For a keyboard the two fields below say the same. */
export function Brush({ histogram, range, isInteger, isReward, onRange }: Props) {
  const { bins, min, max } = histogram;
  const [drawn, setDrawn] = useState<[number, number] | null>(null);
  const most = Math.max(...bins.map((bin) => bin.count), 1);
  const at = (event: PointerEvent<HTMLElement>) => {
    const box = event.currentTarget.getBoundingClientRect();
    return Math.min(bins.length - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * bins.length)));
  };
  const shown = drawn ? rangeOf(bins, drawn[0], drawn[1], isInteger) : range;
  return (
    <div
      className={css["brush"]}
      role="img"
      aria-label={`${histogram.field} of ${counted(histogram.n, "row")}, mean ${figure(histogram.mean)}`}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        setDrawn([at(event), at(event)]);
      }}
      onPointerMove={(event) => drawn && setDrawn([drawn[0], at(event)])}
      onPointerUp={() => {
        if (drawn) onRange(rangeOf(bins, drawn[0], drawn[1], isInteger));
        setDrawn(null);
      }}
      onPointerCancel={() => setDrawn(null)}
    >
      {bins.map((bin, i) => (
        <span key={bin.from} className={css["slot"]} title={`${figure(bin.from)} to ${figure(bin.to)}: ${counted(bin.count, "row")}`}>
          <span
            className={css["bin"]}
            data-in={isIn(bin, shown, i === bins.length - 1)}
            style={{
              // A single row among a million is still seen.
              height: bin.count === 0 ? 0 : `max(2px, ${(100 * bin.count) / most}%)`,
              background: isReward ? rewardColour(share((bin.from + bin.to) / 2, min ?? 0, max ?? 1)) : undefined,
            }}
          />
        </span>
      ))}
    </div>
  );
}
