import { useState } from "react";
import { ApiError } from "@/api/client";
import { Chat } from "@/chat/Chat";
import { Detections } from "@/detections/Detections";
import { Diff } from "@/diff/Diff";
import { useDiffKey } from "@/diff/useDiffKey";
import { Group } from "@/group/Group";
import { HitBar } from "@/hits/HitBar";
import { Info } from "@/info/Info";
import { useKey } from "@/keys/keys";
import { Actions } from "@/notes/Actions";
import { SelectionComment } from "@/notes/SelectionComment";
import { Strip } from "@/notes/Strip";
import { useNotes } from "@/notes/useNotes";
import { Tokens } from "@/tokens/Tokens";
import { useBesideKey } from "@/tokens/useBeside";
import { Notice, ErrorNotice } from "@/parts/Notice";
import { Tabs } from "@/parts/Tabs";
import { useLate } from "@/parts/useLate";
import { useViewState } from "@/state/location";
import { TABS, type Tab } from "@/state/url";
import { Gone } from "./Gone";
import { Head } from "./Head";
import { Skeleton } from "./Skeleton";
import { Unreadable } from "./Unreadable";
import { useMarks } from "./useMarks";
import { hintsOfLink, isBroken, useRollout, type Rollout } from "./useRollout";
import css from "./Reader.module.css";

const LABELS: Record<Tab, string> = { chat: "Chat", tokens: "Tokens", group: "Group", diff: "Diff", info: "Info" };

/** The keys of a tab: its number, and a letter where there is one. */
const KEYS: Record<Tab, string[]> = { chat: ["1"], tokens: ["2", "t"], group: ["3", "g"], diff: ["4"], info: ["5", "i"] };

const HOTKEYS = Object.fromEntries(TABS.map((name) => [name, KEYS[name].join(", ")]));

/** One rollout, from every side. */
export function Reader() {
  const [{ rollout: id }] = useViewState();
  const rollout = useRollout(id, hintsOfLink());
  const isLate = useLate(id !== null && rollout.isFetching && (rollout.isPlaceholderData || !rollout.data));
  useDiffKey();
  useBesideKey();
  if (id === null) return <Notice title="No rollout is chosen">Choose a row, or press j.</Notice>;
  if (rollout.error && !rollout.data) {
    const { error } = rollout;
    const isGone = error instanceof ApiError && [400, 404, 409].includes(error.status);
    return isGone ? <Gone error={error} id={id} /> : <ErrorNotice error={error} title="This rollout could not be read" />;
  }
  if (!rollout.data) return isLate ? <Skeleton /> : null;
  return (
    <article className={css["reader"]} aria-label="Rollout" aria-busy={rollout.isPlaceholderData} data-late={isLate}>
      {isBroken(rollout.data) ? <Broken rollout={rollout.data} /> : <Sides rollout={rollout.data} />}
    </article>
  );
}

function Broken({ rollout }: { rollout: Rollout }) {
  return (
    <>
      <Head rollout={rollout} />
      <Unreadable rollout={rollout} />
    </>
  );
}

function Sides({ rollout }: { rollout: Rollout }) {
  const [{ tab }, set] = useViewState();
  const notes = useNotes(rollout);
  const marks = useMarks(rollout, notes);
  // Of this rollout: what was begun must not end up at another one.
  const [begun, setBegun] = useState<{ id: string; what: "tag" | "comment" } | null>(null);
  const writing = begun?.id === rollout.id ? begun.what : null;
  return (
    <>
      <Head rollout={rollout}>
        <Actions notes={notes} writing={writing} onWrite={(what) => setBegun(writing === what ? null : { id: rollout.id, what })} />
      </Head>
      <Strip rollout={rollout} notes={notes} writing={writing} onDone={() => setBegun(null)} />
      <Detections detections={rollout.detections} />
      <Tabs label="Sides of the rollout" names={LABELS} chosen={tab} onChoose={(next) => set({ tab: next })} hotkeys={HOTKEYS} />
      {TABS.flatMap((name) => KEYS[name].map((keys) => <TabKey key={keys} tab={name} keys={keys} />))}
      <HitBar />
      <div className={css["body"]} role="tabpanel" aria-label={LABELS[tab]}>
        {tab === "chat" && <Chat marks={marks} selectionActions={(selected) => <SelectionComment span={selected} notes={notes} />} />}
        {tab === "tokens" && <Tokens />}
        {tab === "group" && <Group />}
        {tab === "diff" && <Diff />}
        {tab === "info" && <Info />}
      </div>
    </>
  );
}

function TabKey({ tab, keys }: { tab: Tab; keys: string }) {
  const [, set] = useViewState();
  useKey({ keys, label: `${LABELS[tab]} of the rollout`, group: "Reader", run: () => set({ tab }) });
  return null;
}
