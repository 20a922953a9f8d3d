import { useEffect, useMemo } from "react";
import { loadMarkdown } from "@/chat/Blocks";
import { ChatOf } from "@/chat/ChatOf";
import { useKey } from "@/keys/keys";
import { formatPlace, useLivePlace } from "@/live/place";
import { Button } from "@/parts/Button";
import { ErrorNotice, Notice } from "@/parts/Notice";
import { Head } from "./Head";
import type { Session } from "./news";
import { allTurns, newest, pathTo } from "./path";
import { TreeView } from "./TreeView";
import { layout, neighbour, type Way } from "./tree";
import { TurnFacts } from "./TurnFacts";
import { useSession } from "./useSession";
import css from "./Session.module.css";

/** One session while it goes on: its tree at the left, the conversation up to one of its turns at the right. */
export function SessionPage({ id }: { id: string }) {
  const watched = useSession(id);
  const [, set] = useLivePlace();
  const leave = () => set({ session: null, turn: null });
  const { session, state, error } = watched;
  const back = (
    <nav className={css["back"]} aria-label="Way back">
      <Button label="Back to the overview" hotkey="o" keyGroup="Session" kind="quiet" onClick={leave}>
        ← Overview
      </Button>
    </nav>
  );
  if (session) {
    return (
      <div className={css["page"]}>
        {back}
        <Head {...watched} session={session} />
        <Watching session={session} />
      </div>
    );
  }
  return (
    <div className={css["page"]}>
      {back}
      {state === "gone" && error ? (
        <ErrorNotice error={error} title="This session cannot be watched">
          <a href={formatPlace({ run: null, session: null, turn: null })}>All sessions</a>
        </ErrorNotice>
      ) : state === "lost" ? (
        <Notice title="Connection lost">The server is asked again every second.</Notice>
      ) : null}
    </div>
  );
}

function Watching({ session }: { session: Session }) {
  const [{ turn }, set] = useLivePlace();
  useEffect(() => void loadMarkdown(), []);
  const turns = useMemo(() => allTurns(session), [session]);
  const last = newest(session);
  const chosen = turn ?? last;
  const path = useMemo(() => (chosen === null ? null : pathTo(session, chosen)), [session, chosen]);
  const onPath = path?.turns.map((one) => one.turn).join() ?? "";
  const pathTurns = useMemo(() => new Set(onPath === "" ? [] : onPath.split(",").map(Number)), [onPath]);

  const choose = (next: number) => set({ turn: next }, "replace");
  const move = (way: Way) => {
    const next = chosen === null ? null : neighbour(layout(turns), chosen, way);
    if (next !== null) choose(next);
  };
  useKey({ keys: "j", label: "The turn that goes on from this", group: "Session", run: () => move("down") });
  useKey({ keys: "k", label: "The turn before", group: "Session", run: () => move("up") });
  useKey({ keys: "h", label: "The branch at the left", group: "Session", run: () => move("left") });
  useKey({ keys: "l", label: "The branch at the right", group: "Session", run: () => move("right") });

  if (last === null) return <Notice title="Nothing was asked yet">Answers are shown here while they are made.</Notice>;
  const shown = path?.turns.at(-1);
  return (
    <div className={css["panes"]}>
      <section className={css["left"]} aria-label="Tree">
        <div className={css["bar"]}>
          <h2>Tree</h2>
          <Button label={turn === null ? "The newest turn is followed" : "Follow the newest turn"} hotkey="e" keyGroup="Session" kind="quiet" pressed={turn === null} onClick={() => set({ turn: turn === null ? last : null }, "replace")}>
            Newest
          </Button>
        </div>
        <TreeView turns={turns} chosen={shown ? chosen : null} path={pathTurns} onChoose={choose} />
        {shown && <TurnFacts one={shown} />}
      </section>
      <section className={css["right"]} aria-label="Conversation">
        {path && shown ? (
          <Conversation key={turn ?? "newest"} session={session} path={path} isFollowed={turn === null} />
        ) : (
          <Notice title={`This session has no turn ${turn ?? ""}`}>It may have failed, or is still to come.</Notice>
        )}
      </section>
    </div>
  );
}

interface ConversationProps {
  session: Session;
  path: NonNullable<ReturnType<typeof pathTo>>;
  isFollowed: boolean;
}

function Conversation({ session, path, isFollowed }: ConversationProps) {
  const { messages, answer, isGrowing } = path;
  const rollout = useMemo(() => ({ id: session.session, messages, pieces: [] }), [session.session, messages]);
  const follows = isFollowed || isGrowing;
  // A turn that was chosen is looked at from where its answer begins.
  const target = useMemo(() => (follows ? null : { message: answer, range: null, channel: null }), [follows, answer]);
  const isLast = !session.turns.some((one) => one.follows === path.turns.at(-1)?.turn);
  const goesOn = isGrowing ? ({ goesOn: "said" } as const) : session.state === "open" && isLast ? ({ goesOn: "answered" } as const) : {};
  return <ChatOf rollout={rollout} target={target} follows={follows} {...goesOn} />;
}
