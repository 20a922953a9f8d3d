import { Chat } from "@/chat/Chat";
import { Diff } from "@/diff/Diff";
import { useDiffKey } from "@/diff/useDiffKey";
import { Group } from "@/group/Group";
import { Info } from "@/info/Info";
import { Tokens } from "@/tokens/Tokens";
import { useBesideKey } from "@/tokens/useBeside";
import { Notice, ErrorNotice } from "@/parts/Notice";
import { Tabs } from "@/parts/Tabs";
import { useViewState } from "@/state/location";
import type { Tab } from "@/state/url";
import { useRollout } from "./useRollout";
import css from "./Reader.module.css";

const LABELS: Record<Tab, string> = { chat: "Chat", tokens: "Tokens", group: "Group", diff: "Diff", info: "Info" };

/** One rollout, from every side. */
export function Reader() {
  const [{ rollout: id, tab }, set] = useViewState();
  const rollout = useRollout(id);
  useDiffKey();
  useBesideKey();
  if (id === null) return <Notice title="No rollout is chosen">Choose a row, or press j.</Notice>;
  if (rollout.error) return <ErrorNotice error={rollout.error} title="This rollout could not be read" />;
  if (!rollout.data) return null;
  const Shown = { chat: Chat, tokens: Tokens, group: Group, diff: Diff, info: Info }[tab];
  return (
    <article className={css["reader"]} aria-label="Rollout">
      <Tabs label="Sides of the rollout" names={LABELS} chosen={tab} onChoose={(next) => set({ tab: next })} />
      <div className={css["body"]}>
        <Shown />
      </div>
    </article>
  );
}
