import { useState } from "react";
import { ApiError } from "@/api/client";
import { counterpart } from "@/group/figures";
import { useGroup } from "@/group/useGroup";
import { ErrorNotice, Notice } from "@/parts/Notice";
import { useLate } from "@/parts/useLate";
import { useRollout, type Rollout } from "@/reader/useRollout";
import { useViewState } from "@/state/location";
import { DiffBar } from "./DiffBar";
import { DiffHead } from "./DiffHead";
import { DiffText } from "./DiffText";
import { TokenDivergence } from "./TokenDivergence";
import { useDiff } from "./useDiff";
import css from "./Diff.module.css";

/** The rollout against a sibling: what they have in common, where they part, and what that was worth. */
export function Diff() {
  const [{ rollout: id, other: named }, set] = useViewState();
  const group = useGroup(id);
  const siblings = group.data?.all ?? [];
  const isOther = named !== null && named !== id;
  const otherId = isOther ? named : id === null ? null : counterpart(siblings, id);
  const here = useRollout(id);
  const there = useRollout(otherId);
  const error = here.error ?? there.error ?? (isOther ? null : group.error);
  if (error) {
    const isGone = error instanceof ApiError && error.status === 404;
    return <ErrorNotice error={error} title={isGone ? "The other rollout is not in this view" : "The two could not be read"} />;
  }
  if (otherId === null && group.data) {
    return (
      <Notice title="There is nothing to compare with">
        <p>This rollout is the only one of its group in this view. A link with other=ID compares it with any other.</p>
      </Notice>
    );
  }
  if (!here.data || !there.data) return null;
  return (
    <div className={css["diff"]}>
      <DiffHead here={here.data} there={there.data} siblings={siblings} onOther={(next) => set({ other: next })} />
      <TokenDivergence here={here.data} there={there.data} />
      <Compared key={`${here.data.id} ${there.data.id}`} here={here.data} there={there.data} />
    </div>
  );
}

function Compared({ here, there }: { here: Rollout; there: Rollout }) {
  const [{ inline }, set] = useViewState();
  const diff = useDiff(here, there);
  const late = useLate(diff.isPending);
  const [at, setAt] = useState(0);
  if (diff.error) return <ErrorNotice error={diff.error} title="The two could not be compared" />;
  if (!diff.data) return late ? <p className={css["wait"]}>Comparing …</p> : null;
  const { changes } = diff.data;
  if (changes === 0) return <Notice title="The two say the same, character by character">Choose another rollout above.</Notice>;
  return (
    <>
      <DiffBar
        at={at}
        changes={changes}
        sameStart={diff.data.sameStart}
        inline={inline}
        onAt={(next) => setAt(Math.min(changes - 1, Math.max(0, next)))}
        onInline={(next) => set({ inline: next }, "replace")}
        onSwap={() => set({ rollout: there.id, other: here.id })}
      />
      <DiffText result={diff.data} at={at} inline={inline} />
    </>
  );
}
