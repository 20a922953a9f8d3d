import { useMemo } from "react";
import { Chat } from "@/chat/Chat";
import { ErrorNotice, Notice } from "@/parts/Notice";
import { useLate } from "@/parts/useLate";
import { useViewState } from "@/state/location";
import { modelOf } from "./model";
import { TokenPane } from "./TokenPane";
import { useTokens } from "./useTokens";
import css from "./Tokens.module.css";

/** The tokens of the rollout, alone or with its chat beside them. */
export function Tokens() {
  const [{ beside }] = useViewState();
  if (!beside) return <OfRollout />;
  return (
    <div className={css["frame"]}>
      <div className={css["split"]}>
        <div className={css["side"]}>
          <Chat />
        </div>
        <div className={css["side"]}>
          <OfRollout />
        </div>
      </div>
    </div>
  );
}

function OfRollout() {
  const [{ rollout }] = useViewState();
  const tokens = useTokens(rollout);
  const late = useLate(tokens.isPending);
  const answer = tokens.data?.answer;
  const model = useMemo(() => (answer ? modelOf(answer) : null), [answer]);
  if (tokens.error) return <ErrorNotice error={tokens.error} title="The tokens of this rollout could not be read" />;
  if (answer === undefined) return late ? <p className={css["wait"]}>Reading tokens …</p> : null;
  if (!model || model.length === 0) {
    return (
      <Notice title="This rollout has no tokens">
        <p>
          Its row holds text only. A run keeps token ids, log-probabilities and loss masks in its archive when its setting{" "}
          <code>archive_tokens</code> is on; rows of other writers need <code>tokens</code> with <code>response_length</code> or{" "}
          <code>loss_mask</code>.
        </p>
      </Notice>
    );
  }
  return <TokenPane key={tokens.data?.id} id={tokens.data?.id ?? ""} model={model} />;
}
