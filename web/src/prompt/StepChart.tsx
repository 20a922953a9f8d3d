import { memo, useMemo, useRef } from "react";
import { grouped } from "@/parts/grouped";
import { figure, rewardColour, share } from "@/parts/numbers";
import { useWidth } from "@/tokens/useWidth";
import { turnsOf, type AtStep } from "./story";
import css from "./Prompt.module.css";

const HEIGHT = 132;
const EDGE = { left: 72, right: 44, top: 20, bottom: 20 };
const DOT = 3.5;

interface Props {
  steps: AtStep[];
  current: string | null;
  onOpen: (id: string) => void;
}

const MARKS = { first: "first solved", lost: "lost", back: "back" } as const;

/** A dot for each rollout, a line for their mean, and a mark where solving began or was lost. */
export const StepChart = memo(function StepChart({ steps, current, onOpen }: Props) {
  const box = useRef<HTMLDivElement>(null);
  // Drawn at its true size: letters that grow and shrink with the pane are hard to read.
  const width = Math.max(240, useWidth(box));
  const chart = useMemo(() => {
    const rewards = steps.flatMap(({ all }) => all.map(({ reward }) => reward)).filter((reward) => reward !== null);
    const low = Math.min(0, ...rewards);
    const high = Math.max(...rewards, low === 0 ? 1 : 0);
    const first = steps[0]?.step ?? 0;
    const last = steps.at(-1)?.step ?? 0;
    const x = (step: number) => EDGE.left + share(step, first, last) * (width - EDGE.left - EDGE.right);
    const y = (reward: number) => HEIGHT - EDGE.bottom - share(reward, low, high) * (HEIGHT - EDGE.top - EDGE.bottom);
    // Equal rewards of one step would hide each other: they stand side by side as far as there is room.
    const room = Math.min(DOT * 2, (width - EDGE.left - EDGE.right) / Math.max(1, steps.length) / 10);
    const dots = steps.flatMap(({ step, all }) =>
      [...grouped(all.filter(({ reward }) => reward !== null), ({ reward }) => reward ?? 0)].flatMap(([reward, equal]) =>
        equal.map((rollout, i) => ({ rollout, reward, step, cx: x(step) + (i - (equal.length - 1) / 2) * room, cy: y(reward) })),
      ),
    );
    const means = steps.filter(({ mean }) => mean !== null).map(({ step, mean }) => `${x(step).toFixed(1)},${y(mean ?? 0).toFixed(1)}`);
    return { low, high, first, last, x, y, dots, means };
  }, [steps, width]);
  const { low, high, first, last, x, y, dots, means } = chart;
  return (
    <div ref={box} className={css["chartBox"]}>
      <svg className={css["chart"]} viewBox={`0 0 ${width} ${HEIGHT}`} role="img" aria-label={`Rewards from step ${first} to ${last}; the same figures are in the list below`}>
        {[low, high].map((reward) => (
          <g key={reward}>
            <line className={css["rule"]} x1={EDGE.left - 32} x2={width - EDGE.right + 32} y1={y(reward)} y2={y(reward)} />
            <text className={css["label"]} x={EDGE.left - 40} y={y(reward) + 4} textAnchor="end">
              {figure(reward)}
            </text>
          </g>
        ))}
        {turnsOf(steps).map(({ what, step }) => (
          <g key={step}>
            <line className={css["turn"]} data-what={what} x1={x(step)} x2={x(step)} y1={EDGE.top - 4} y2={HEIGHT - EDGE.bottom} />
            <text className={css["label"]} x={x(step)} y={EDGE.top - 8} textAnchor="middle">
              {MARKS[what]}
            </text>
          </g>
        ))}
        <polyline className={css["mean"]} points={means.join(" ")} />
        {dots.map(({ rollout, reward, step, cx, cy }) => (
          <circle
            key={rollout.id}
            className={css["dot"]}
            data-current={rollout.id === current}
            cx={cx}
            cy={cy}
            r={DOT}
            style={{ fill: rewardColour(share(reward, low, high)) }}
            onClick={() => onOpen(rollout.id)}
          >
            <title>{`step ${step}, reward ${figure(reward)}: open`}</title>
          </circle>
        ))}
        {[...new Set([first, last])].map((step) => (
          <text key={step} className={css["label"]} x={x(step)} y={HEIGHT - 4} textAnchor="middle">
            step {step}
          </text>
        ))}
      </svg>
    </div>
  );
});
