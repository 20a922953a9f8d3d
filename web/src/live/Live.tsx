import { useQuery } from "@tanstack/react-query";
import { api, ask } from "@/api/client";
import { useKey } from "@/keys/keys";
import { ErrorNotice, Notice } from "@/parts/Notice";
import { compact, counted } from "@/parts/numbers";
import { SessionPage } from "@/sessions/SessionPage";
import { Sessions, useSessions } from "@/sessions/Sessions";
import { Nodes } from "./Nodes";
import { useLivePlace } from "./place";
import { RunDetail } from "./RunDetail";
import type { LiveRun } from "./types";
import css from "./Live.module.css";

function useLive() {
  return useQuery({
    queryKey: ["live"],
    queryFn: () => ask(api.GET("/api/live")),
    refetchInterval: 1000,
    staleTime: 0,
  });
}

/** The yard at work, or one session of it. */
export function Live() {
  const [{ session }] = useLivePlace();
  return session === null ? <Overview /> : <SessionPage key={session} id={session} />;
}

/** Who asks, who writes, who reads, what waits, and what is stuck and why. */
function Overview() {
  const live = useLive();
  const sessions = useSessions();
  const [{ run: name }, set] = useLivePlace();
  const setName = (run: string) => set({ run }, "replace");
  const runs = live.data?.runs ?? [];
  const run = runs.find((one) => one.run === name) ?? runs[0];
  const move = (by: number) => {
    const next = runs[runs.findIndex((one) => one === run) + by];
    if (next) setName(next.run);
  };
  useKey({ keys: "j", label: "Next run", group: "Live", run: () => move(1) });
  useKey({ keys: "k", label: "Previous run", group: "Live", run: () => move(-1) });
  if (live.error && !live.data) return <ErrorNotice error={live.error} title="The overview cannot be read" />;
  if (!live.data || sessions.isPending) return null;
  const nowMs = live.data.now_ms;
  const listed = sessions.data?.counts ? <Sessions sessions={sessions.data.sessions} nowMs={nowMs} /> : null;
  if (!run) {
    return (
      <div className={css["main"]}>
        <Nodes onChoose={setName} />
        {listed}
        <Notice title="This server has no runs">Runs appear as soon as somebody writes to one, or POST /api/runs makes one.</Notice>
      </div>
    );
  }
  return (
    <div className={css["live"]}>
      <nav className={css["runs"]} aria-label="Runs">
        <h2>{counted(runs.length, "run")}</h2>
        <ul>
          {runs.map((one) => (
            <li key={one.run}>
              <RunButton run={one} chosen={one === run} onChoose={() => setName(one.run)} />
            </li>
          ))}
        </ul>
      </nav>
      <div className={css["main"]}>
        <Nodes onChoose={setName} />
        {listed}
        <RunDetail run={run} nowMs={nowMs} />
      </div>
    </div>
  );
}

function RunButton({ run, chosen, onChoose }: { run: LiveRun; chosen: boolean; onChoose: () => void }) {
  return (
    <button type="button" className={css["run"]} aria-pressed={chosen} onClick={onChoose}>
      <span className={css["name"]}>{run.run}</span>
      <span className={css["quiet"]}>{`${rate(run.rates.admitted)} in, ${rate(run.rates.read)} out`}</span>
      {run.stuck.length > 0 && <span className={css["stuckMark"]}>{counted(run.stuck.length, "trouble")}</span>}
    </button>
  );
}

export function rate(perSecond: number): string {
  if (perSecond === 0) return "0/s";
  return perSecond < 10 ? `${perSecond.toFixed(1)}/s` : `${compact(perSecond)}/s`;
}
