import type { ReactNode } from "react";
import { api, ask } from "@/api/client";
import { useAsk } from "@/api/view";
import { count, figure, rewardText, share } from "@/parts/numbers";
import { useViewState } from "@/state/location";
import { format, parse } from "@/state/url";
import { CopyButton } from "./CopyButton";
import { marksOf, rewardOf, rewardParts, statusOf, valuesOf, versionOf, type Fact } from "./facts";
import { isBroken, type Rollout } from "./useRollout";
import css from "./Head.module.css";

/** What a rollout is, at a glance: what it got first, then where it is from. */
export function Head({ rollout, children }: { rollout: Rollout; children?: ReactNode }) {
  const { number, text } = valuesOf(rollout);
  const [step, source] = [number("step"), text("data_source")];
  const reward = rewardOf(rollout);
  const parts = rewardParts(rollout);
  const status = statusOf(rollout);
  const file = rollout.source.file.split("/").at(-1) ?? rollout.source.file;
  return (
    <header className={css["head"]}>
      <div className={css["line"]}>
        {!isBroken(rollout) && (
          <span className={css["reward"]} title="Reward" style={reward === null ? undefined : { color: rewardText(share(reward, 0, 1)) }}>
            <span className="visually-hidden">Reward </span>
            {reward === null ? "no reward" : figure(reward)}
          </span>
        )}
        {step !== null && <span>step {figure(step)}</span>}
        {source !== null && <span className={css["source"]} title={source}>{source}</span>}
        {status && <Chip fact={status} />}
        <span className={css["actions"]}>{children}</span>
      </div>
      {parts.length > 0 && (
        <dl className={css["parts"]} aria-label="Parts of the reward">
          {parts.map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{figure(value)}</dd>
            </div>
          ))}
        </dl>
      )}
      <div className={css["small"]}>
        <CopyButton label={`Copy the id ${rollout.id}`} text={() => rollout.id} className={css["id"]}>
          {rollout.id.slice(0, 8)}
        </CopyButton>
        <CopyButton label="Copy a link to what is shown" hotkey="y" text={() => linkTo(rollout)} className={css["link"]}>
          copy link
        </CopyButton>
        <Position rollout={rollout} />
        {[...versionOf(rollout), ...marksOf(rollout)].map((fact) => (
          <Chip key={fact.name} fact={fact} />
        ))}
        <span className={css["file"]} title={`${rollout.source.file}, line ${count(rollout.source.line)}`}>
          {file}:{rollout.source.line}
        </span>
        {rollout.copies.length > 1 && <span title={rollout.copies.map(({ file: other, line }) => `${other}:${line}`).join("\n")}>{count(rollout.copies.length)} copies</span>}
      </div>
    </header>
  );
}

function Chip({ fact }: { fact: Fact }) {
  return (
    <span className={css["chip"]} data-kind={fact.kind ?? "plain"} title={fact.more === undefined ? fact.text : `${fact.text}: ${fact.more}`}>
      {fact.text}
    </span>
  );
}

/** Which of its group it is. */
function Position({ rollout }: { rollout: Rollout }) {
  const [, set] = useViewState();
  const { id, siblings } = rollout;
  const group = useAsk(["siblings", id], (view) => ask(api.GET("/api/view/{view}/rollouts/{id}/group", { params: { path: { view, id } } })), {
    enabled: siblings > 0,
    live: false,
  });
  const at = group.data?.rollouts.findIndex((other) => other.id === id) ?? -1;
  if (siblings === 0) return null;
  return (
    <button type="button" className={css["position"]} title="Show its group (g)" onClick={() => set({ tab: "group" })}>
      {at < 0 ? `one of ${count(siblings + 1)}` : `${count(at + 1)} of ${count(siblings + 1)}`} in its group
    </button>
  );
}

/** With what finds others like it, should it ever be gone. */
function linkTo(rollout: Rollout): string {
  const params = new URLSearchParams(format({ ...parse(location.search), rollout: rollout.id }));
  const { number, text } = valuesOf(rollout);
  const hints = { n: number("rollout_n"), g: text("group_id") ?? number("group_id") };
  for (const [name, hint] of Object.entries(hints)) if (hint !== null) params.set(name, String(hint));
  return `${location.origin}${location.pathname}?${params.toString()}`;
}
