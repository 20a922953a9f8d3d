import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { api, ask } from "@/api/client";
import { span } from "@/live/Waiting";
import { isGiven } from "@/parts/given";
import { CopyButton } from "@/reader/CopyButton";
import { count, counted, figure } from "@/parts/numbers";
import { equals, format, INITIAL } from "@/state/url";
import type { Session } from "./news";
import { State } from "./State";
import type { Watched } from "./useSession";
import css from "./Session.module.css";

/** What the session is, how it stands, and whether what is seen is what is. */
export function Head({ session, state, error }: Watched & { session: Session }) {
  const now = useNow(session.state === "open");
  const age = span(now - session.opened_ms);
  const figures = [
    counted(session.turns.length, "turn"),
    session.running > 0 ? `${count(session.running)} under way` : null,
    `${counted(session.sampled_tokens, "token")} sampled`,
    session.failures > 0 ? counted(session.failures, "failure") : null,
    session.state !== "open" ? `opened ${age} ago` : session.expires_ms > now ? `${age} old, expires in ${span(session.expires_ms - now)}` : `${age} old, expires now`,
  ];
  return (
    <header className={css["head"]}>
      <div className={css["line"]}>
        <h1>{session.session}</h1>
        <CopyButton label="Copy the name of the session" text={() => session.session}>
          Copy
        </CopyButton>
        <State state={session.state} />
        {isGiven(session.reason) && <span className={css["long"]}>{session.reason}</span>}
        <span className={css["reward"]}>{!isGiven(session.reward) ? "no reward" : `reward ${figure(session.reward)}`}</span>
        <RolloutLink session={session} />
        <span className={css["connection"]} data-state={state} role="status">
          {{ connecting: "connecting", live: "watching", lost: "connection lost, asking again", gone: error?.message ?? "gone" }[state]}
        </span>
      </div>
      <div className={css["line"]}>
        <span className={css["quiet"]}>{`${session.run} · ${session.instance_id} · slot ${session.slot}${!isGiven(session.group_size) ? "" : ` of ${session.group_size}`}`}</span>
        <span className={css["quiet"]}>{figures.filter((one) => one !== null).join(" · ")}</span>
        {isGiven(session.last_error) && <span className={css["error"]} title={session.last_error}>{`last error: ${session.last_error}`}</span>}
      </div>
    </header>
  );
}

/** To its rollouts, once they are in the yard and where the run is archived. One that was given up left none. */
function RolloutLink({ session }: { session: Session }) {
  const hasRollouts = session.is_delivered && session.state !== "abandoned" && isGiven(session.reward) && session.turns.length > 0;
  const { data } = useQuery({ queryKey: ["live"], queryFn: () => ask(api.GET("/api/live")), enabled: hasRollouts, staleTime: 0 });
  const run = data?.runs.find((one) => one.run === session.run);
  if (!hasRollouts || !run?.archive) return null;
  // Followed, for it may be on its way to the archive still.
  return <a href={`/${format({ ...INITIAL, places: [`yard://${run.run}`], clauses: [equals("uid", session.session)], follow: true })}`}>Its rollout</a>;
}

function useNow(isTicking: boolean): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    if (!isTicking) return;
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [isTicking]);
  return now;
}
