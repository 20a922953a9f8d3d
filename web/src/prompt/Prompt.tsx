import { useMemo } from "react";
import { usePrompt } from "@/group/useGroup";
import { ErrorNotice } from "@/parts/Notice";
import { count, counted } from "@/parts/numbers";
import { useViewState } from "@/state/location";
import { StepChart } from "./StepChart";
import { StepList } from "./StepList";
import { byStep, storyOf } from "./story";
import css from "./Prompt.module.css";

/** The same prompt over the steps: when it was first solved, and whether that lasted. */
export function Prompt() {
  const [{ rollout }, set] = useViewState();
  const prompt = usePrompt(rollout);
  const steps = useMemo(() => byStep(prompt.data?.all ?? []), [prompt.data]);
  const story = useMemo(() => storyOf(steps), [steps]);
  if (prompt.error) return <ErrorNotice error={prompt.error} title="The other steps of this prompt could not be read" />;
  if (!prompt.data) return null;
  const { all, total } = prompt.data;
  const open = (id: string) => set({ rollout: id });
  const bestAt = (step: number) => steps.find((at) => at.step === step)?.best?.id;
  return (
    <section className={css["prompt"]} aria-label="Same prompt over steps">
      <h2 className={css["title"]}>
        Same prompt over steps <span>{counted(total, "rollout")} at {counted(steps.length, "step")}</span>
      </h2>
      <p className={css["story"]}>
        {story.map((part, i) => {
          if (typeof part === "string") return part;
          const id = bestAt(part.step);
          return (
            <button key={i} type="button" className={css["link"]} title={`Open the best rollout of step ${part.step}`} onClick={() => id !== undefined && open(id)}>
              {part.step}
            </button>
          );
        })}
      </p>
      {all.length < total && <p className={css["note"]}>The first {count(all.length)} of them are shown.</p>}
      {steps.some(({ graded }) => graded > 0) && <StepChart steps={steps} current={rollout} onOpen={open} />}
      <StepList steps={steps} current={rollout} onOpen={open} />
    </section>
  );
}
