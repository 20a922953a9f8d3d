import { useState } from "react";
import { Button } from "@/parts/Button";
import { ErrorNotice } from "@/parts/Notice";
import { counted, count, figure } from "@/parts/numbers";
import { useLate } from "@/parts/useLate";
import { Prompt } from "@/prompt/Prompt";
import { useViewState } from "@/state/location";
import { deadReason, deviation, rewardsOf } from "./figures";
import { SiblingTable } from "./SiblingTable";
import { useGroup } from "./useGroup";
import css from "./Group.module.css";

/** All rollouts of the prompt at this step, and below how the prompt fared over the steps. */
export function Group() {
  const [{ rollout }, set] = useViewState();
  const group = useGroup(rollout);
  const late = useLate(group.isPending);
  const [marked, setMarked] = useState<string[]>([]);
  if (group.error) return <ErrorNotice error={group.error} title="The group could not be read" />;
  if (!group.data) return late ? <p className={css["wait"]}>Reading the group …</p> : null;
  const { all, total, best = null, worst = null, reward_mean, reward_min, reward_max, zero_variance } = group.data;
  const rewards = rewardsOf(all);
  const dead = deadReason(all, zero_variance);
  const [first, second] = marked.filter((id) => all.some((sibling) => sibling.id === id));
  const diff = () => {
    if (first !== undefined) set({ tab: "diff", rollout: second === undefined ? rollout : first, other: second ?? first });
  };
  // The two last ones count: a third mark takes the place of the first.
  const mark = (id: string) => setMarked((old) => (old.includes(id) ? old.filter((other) => other !== id) : [...old, id].slice(-2)));
  return (
    <div className={css["group"]}>
      <section aria-label="Group">
        <div className={css["head"]}>
          <dl className={css["facts"]}>
            <Fact name="Rollouts" value={count(total)} />
            <Fact name="Mean" value={figure(reward_mean)} />
            <Fact name="Std" value={figure(deviation(rewards))} />
            <Fact name="Min" value={figure(reward_min)} />
            <Fact name="Max" value={figure(reward_max)} />
          </dl>
          <div className={css["buttons"]}>
            <Button label="Best of the group" hotkey="Shift+B" keyGroup="Group" disabled={best === null} onClick={() => set({ rollout: best })}>
              Best
            </Button>
            <Button label="Lowest of the group" hotkey="Shift+L" keyGroup="Group" disabled={worst === null} onClick={() => set({ rollout: worst })}>
              Lowest
            </Button>
            <Button
              label={second === undefined ? "Diff this rollout with the marked one" : "Diff the two marked rollouts"}
              hotkey="Shift+D"
              keyGroup="Group"
              disabled={first === undefined || (second === undefined && first === rollout)}
              onClick={diff}
            >
              Diff marked
            </Button>
          </div>
        </div>
        {dead !== null && <p className={css["dead"]}>{dead}</p>}
        {all.length === 1 && <p className={css["alone"]}>This rollout is the only one of its group in this view.</p>}
        {all.length < total && <p className={css["alone"]}>The first {counted(all.length, "rollout")} of {count(total)} are shown.</p>}
        <SiblingTable all={all} current={rollout} marked={marked} onMark={mark} onOpen={(id) => set({ rollout: id })} />
      </section>
      <Prompt />
    </div>
  );
}

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}
