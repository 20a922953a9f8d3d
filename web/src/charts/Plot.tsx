/** Lines over steps: uPlot, in the colours of the theme, with a brush and a cursor that the keyboard moves too. */

import { useEffect, useEffectEvent, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { THEME_CHANGED } from "@/app/theme";
import css from "./Plot.module.css";

export interface Line {
  label: string;
  /** A CSS variable, such as `--series-1`. */
  colour: string;
  values: (number | null)[];
  /** Drawn around the line, such as one standard deviation. */
  low?: (number | null)[];
  high?: (number | null)[];
}

interface Props {
  /** Names the chart for those who cannot see it. */
  label: string;
  xs: number[];
  lines: Line[];
  height: number;
  format: (value: number) => string;
  /** The part that is chosen already. */
  chosen?: [number, number] | null;
  /** Brushed, clicked, or chosen by keys: from and to, which are equal for one step. */
  onChoose?: (from: number, to: number) => void;
  /** Index of the step under the cursor. */
  onCursor?: (index: number | null) => void;
  /** What the axis below says; steps as they are if left out. */
  xFormat?: (x: number) => string;
  /** Room is dear: no axis labels but the ends. */
  small?: boolean;
}

function variable(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** `0.500` is `0.5` on an axis. */
function plain(text: string): string {
  return text.replace(/(\.\d*?)0+(?=\D*$)/, "$1").replace(/\.(?=\D*$)/, "");
}

function data(xs: number[], lines: Line[]): uPlot.AlignedData {
  return [xs, ...lines.flatMap((line) => [line.values, line.low ?? [], line.high ?? []])];
}

function options(props: Props, width: number): uPlot.Options {
  const { lines, height, format, xFormat, small = false } = props;
  const font = `${variable("--size-small")} ${variable("--font")}`;
  const axis = { stroke: variable("--muted"), font, grid: { stroke: variable("--border"), width: 1 }, ticks: { show: false } };
  const hidden = { show: true, width: 0, points: { show: false } };
  return {
    width,
    height,
    padding: [8, 8, 0, 0],
    legend: { show: false },
    scales: { x: { time: false } },
    series: [
      {},
      ...lines.flatMap((line): uPlot.Series[] => {
        const stroke = variable(line.colour);
        const points = { show: line.values.length < 60 && !small, size: 4, fill: stroke };
        return [{ label: line.label, stroke, width: 1.5, points, spanGaps: true }, { ...hidden }, { ...hidden }];
      }),
    ],
    bands: lines.flatMap((line, i) =>
      line.low ? [{ series: [3 * i + 3, 3 * i + 2] as [number, number], fill: `color-mix(in srgb, ${variable(line.colour)} 14%, transparent)` }] : [],
    ),
    axes: [
      { ...axis, size: 22, gap: 2, space: small ? 80 : 50, grid: { show: false }, ...(xFormat ? { values: (_: uPlot, ticks: number[]) => ticks.map(xFormat) } : {}) },
      { ...axis, size: small ? 40 : 48, gap: 4, space: 28, values: (_, ticks) => ticks.map((tick) => plain(format(tick))) },
    ],
    cursor: { drag: { x: true, y: false, setScale: false }, y: false, points: { size: 7 } },
  };
}

export function Plot(props: Props) {
  const { label, xs, lines, height, chosen = null } = props;
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [theme, setTheme] = useState(0);
  const tellCursor = useEffectEvent((index: number | null) => props.onCursor?.(index));
  const choose = useEffectEvent((from: number, to: number) => props.onChoose?.(from, to));
  const make = useEffectEvent((element: HTMLDivElement) => {
    const made = new uPlot(
      {
        ...options(props, element.clientWidth || 300),
        hooks: {
          setCursor: [(self) => tellCursor(self.cursor.idx ?? null)],
          setSelect: [
            (self) => {
              if (self.select.width < 2) return;
              const at = (px: number) => self.posToVal(px, "x");
              const inside = xs.filter((x) => x >= at(self.select.left) && x <= at(self.select.left + self.select.width));
              const [first, last] = [inside[0], inside.at(-1)];
              self.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
              if (first !== undefined && last !== undefined) choose(first, last);
            },
          ],
          ready: [
            (self) => {
              self.over.addEventListener("click", () => {
                const x = self.cursor.idx === null || self.cursor.idx === undefined ? undefined : xs[self.cursor.idx];
                if (x !== undefined) choose(x, x);
              });
            },
          ],
          draw: [(self) => drawChosen(self, chosen)],
        },
      },
      data(xs, lines),
      element,
    );
    return made;
  });

  useEffect(() => {
    const changed = () => setTheme((n) => n + 1);
    window.addEventListener(THEME_CHANGED, changed);
    return () => window.removeEventListener(THEME_CHANGED, changed);
  }, []);

  // Data comes anew a few times a minute at most, and a new chart takes a millisecond: no patching of the old one.
  useEffect(() => {
    const element = host.current;
    if (!element) return;
    const made = make(element);
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [xs, lines, height, chosen, theme]);

  const onKey = (key: string): boolean => {
    const self = plot.current;
    if (!self || xs.length === 0) return false;
    const now = self.cursor.idx ?? -1;
    if (key === "Enter" || key === " ") {
      const x = xs[now];
      if (x !== undefined) props.onChoose?.(x, x);
      return x !== undefined;
    }
    const next = key === "ArrowRight" ? now + 1 : key === "ArrowLeft" ? now - 1 : key === "Home" ? 0 : key === "End" ? xs.length - 1 : null;
    const x = next === null ? undefined : xs[Math.min(Math.max(next, 0), xs.length - 1)];
    if (x === undefined) return false;
    self.setCursor({ left: self.valToPos(x, "x"), top: 0 });
    return true;
  };

  return (
    <div
      ref={host}
      className={css["plot"]}
      style={{ height }}
      role="application"
      aria-label={`${label}; arrows move over the steps, Enter shows the rows of one`}
      tabIndex={0}
      onKeyDown={(event) => {
        if (onKey(event.key)) event.preventDefault();
      }}
    />
  );
}

function drawChosen(self: uPlot, chosen: [number, number] | null) {
  if (!chosen) return;
  const [from, to] = chosen.map((x) => self.valToPos(x, "x", true)) as [number, number];
  const { ctx, bbox } = self;
  ctx.save();
  ctx.fillStyle = variable("--accent");
  ctx.globalAlpha = 0.12;
  ctx.fillRect(from - 3, bbox.top, to - from + 6, bbox.height);
  ctx.globalAlpha = 1;
  ctx.fillRect(from - 3, bbox.top + bbox.height - 2, to - from + 6, 2);
  ctx.restore();
}
