import { useCallback, useRef, useState, type ReactNode } from "react";
import css from "./Panes.module.css";

interface Props {
  /** Names the widths, which are kept for the next visit. */
  name: string;
  left: ReactNode;
  middle: ReactNode;
  right: ReactNode;
}

interface Widths {
  left: number;
  right: number;
}

const LIMITS = { left: [160, 560], right: [280, 1600] } as const;

function stored(name: string): Widths {
  const usual = { left: 248, right: Math.round(Math.max(LIMITS.right[0], window.innerWidth * 0.42)) };
  try {
    return { ...usual, ...(JSON.parse(localStorage.getItem(name) ?? "{}") as Partial<Widths>) };
  } catch {
    return usual;
  }
}

/** Three panes side by side; the two at the edges are as wide as the user makes them. */
export function Panes({ name, left, middle, right }: Props) {
  const [widths, setWidths] = useState(() => stored(name));
  const change = useCallback(
    (side: keyof Widths, width: number) => {
      setWidths((old) => {
        const [min, max] = LIMITS[side];
        const next = { ...old, [side]: Math.round(Math.min(Math.max(width, min), Math.min(max, window.innerWidth - 360))) };
        localStorage.setItem(name, JSON.stringify(next));
        return next;
      });
    },
    [name],
  );
  const shown = { left: widths.left, right: Math.min(widths.right, Math.max(LIMITS.right[0], window.innerWidth - widths.left - 320)) };
  return (
    <div className={css["panes"]} style={{ gridTemplateColumns: `${shown.left}px 1px minmax(0, 1fr) 1px ${shown.right}px` }}>
      <div className={css["pane"]}>{left}</div>
      <Edge label="Width of the left pane" width={shown.left} limits={LIMITS.left} onWidth={(width) => change("left", width)} sign={1} />
      <div className={css["pane"]}>{middle}</div>
      <Edge label="Width of the reader" width={shown.right} limits={LIMITS.right} onWidth={(width) => change("right", width)} sign={-1} />
      <div className={css["pane"]}>{right}</div>
    </div>
  );
}

interface EdgeProps {
  label: string;
  width: number;
  limits: readonly [number, number];
  onWidth: (width: number) => void;
  /** Which way the pane grows when the pointer goes right. */
  sign: 1 | -1;
}

function Edge({ label, width, limits, onWidth, sign }: EdgeProps) {
  const start = useRef<{ x: number; width: number } | null>(null);
  return (
    <div
      className={css["edge"]}
      role="separator"
      aria-orientation="vertical"
      aria-label={label}
      aria-valuenow={width}
      aria-valuemin={limits[0]}
      aria-valuemax={limits[1]}
      tabIndex={0}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        start.current = { x: event.clientX, width };
      }}
      onPointerMove={(event) => {
        if (start.current) onWidth(start.current.width + sign * (event.clientX - start.current.x));
      }}
      onPointerUp={() => (start.current = null)}
      onKeyDown={(event) => {
        const step = event.key === "ArrowRight" ? 16 : event.key === "ArrowLeft" ? -16 : 0;
        if (step === 0) return;
        event.preventDefault();
        onWidth(width + sign * step);
      }}
    />
  );
}
