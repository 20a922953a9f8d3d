import { memo, useMemo, type PointerEvent } from "react";
import type { TextMark } from "@/text/segments";
import { BANDS, bandsOf, ticksOf } from "./minimap";
import type { Row } from "./rows";
import css from "./Minimap.module.css";

interface Props {
  rows: readonly Row[];
  marks: ReadonlyMap<number, readonly TextMark[]>;
  measured: readonly { start: number; size: number }[];
  /** Of all, and what of it is in sight. */
  height: number;
  offset: number;
  inSight: number;
  onJump: (offset: number) => void;
}

/** Where one is in a long chat. For the pointer: keys have Shift+J, Shift+K and those that scroll. */
export const Minimap = memo(function Minimap({ rows, marks, measured, height, offset, inSight, onJump }: Props) {
  const bands = useMemo(() => bandsOf(rows, measured, height), [rows, measured, height]);
  const ticks = useMemo(() => ticksOf(rows, marks, measured, height), [rows, marks, measured, height]);
  const jump = (event: PointerEvent<HTMLDivElement>) => {
    const box = event.currentTarget.getBoundingClientRect();
    const share = (event.clientY - box.top) / box.height;
    onJump(Math.max(0, share * height - inSight / 2));
  };
  const percent = (share: number) => `${Math.min(100, share * 100)}%`;
  return (
    <div
      className={css["map"]}
      aria-hidden="true"
      data-testid="minimap"
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        jump(event);
      }}
      onPointerMove={(event) => {
        if (event.buttons === 1) jump(event);
      }}
    >
      {bands.map((band) => (
        <i key={band.from} className={css["band"]} data-channel={band.channel} style={{ top: percent(band.from / BANDS), height: percent((band.to - band.from) / BANDS) }} />
      ))}
      {ticks.map((tick) => (
        <i key={`${tick.band} ${tick.kind}`} className={css["tick"]} data-kind={tick.kind} style={{ top: percent(tick.band / BANDS) }} />
      ))}
      <i className={css["sight"]} style={{ top: percent(offset / height), height: percent(inSight / height) }} />
    </div>
  );
});
