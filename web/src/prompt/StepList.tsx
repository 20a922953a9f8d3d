import { memo } from "react";
import { RewardBar } from "@/group/RewardBar";
import { count } from "@/parts/numbers";
import type { AtStep } from "./story";
import css from "./Prompt.module.css";

interface Props {
  steps: AtStep[];
  current: string | null;
  onOpen: (id: string) => void;
}

/** The steps one by one: the chart for those who cannot point at it, and for exact figures. */
export const StepList = memo(function StepList({ steps, current, onOpen }: Props) {
  const means = steps.map(({ mean }) => mean).filter((mean) => mean !== null);
  const low = Math.min(0, ...means);
  const high = Math.max(...means, low === 0 ? 1 : 0);
  return (
    <ul className={css["steps"]} aria-label="Steps of this prompt">
      {steps.map(({ step, all, passes, graded, mean, best }) => (
        <li key={step}>
          <button
            type="button"
            className={css["step"]}
            aria-current={all.some(({ id }) => id === current)}
            onClick={() => {
              const id = best?.id ?? all[0]?.id;
              if (id !== undefined) onOpen(id);
            }}
          >
            <span>step {step}</span>
            <span className={css["muted"]}>
              {count(passes)} of {count(graded)} solved
            </span>
            <RewardBar reward={mean} low={low} high={high} />
          </button>
        </li>
      ))}
    </ul>
  );
});
