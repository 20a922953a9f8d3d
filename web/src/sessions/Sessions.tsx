import { useQuery } from "@tanstack/react-query";
import type { MouseEvent } from "react";
import { api, ask, type Schema } from "@/api/client";
import { useKey } from "@/keys/keys";
import { formatPlace, useLivePlace } from "@/live/place";
import { span } from "@/live/Waiting";
import { isGiven } from "@/parts/given";
import { count, counted, figure } from "@/parts/numbers";
import { State } from "./State";
import css from "./Sessions.module.css";

type Row = Schema["SessionRow"];

export function useSessions() {
  return useQuery({ queryKey: ["sessions"], queryFn: () => ask(api.GET("/api/sessions")), refetchInterval: 1000, staleTime: 0 });
}

/** Sessions that are open or were closed lately, the newest first. A server without an engine has none. */
export function Sessions({ sessions, nowMs }: { sessions: readonly Row[]; nowMs: number }) {
  const [, set] = useLivePlace();
  const open = (session: string) => set({ session, turn: null });
  const first = sessions[0];
  useKey(first ? { keys: "s", label: "Open the newest session", group: "Live", run: () => open(first.session) } : null);
  const openNow = sessions.filter(({ state }) => state === "open").length;
  return (
    <section className={css["sessions"]} aria-label="Sessions">
      <h2>{`Sessions: ${count(openNow)} open, ${count(sessions.length - openNow)} closed lately`}</h2>
      {sessions.length === 0 ? (
        <p className={css["quiet"]}>None is open. Agents ask in one that was opened by POST /api/sessions.</p>
      ) : (
        <div className={css["scroller"]} tabIndex={0} role="region" aria-label="The newest first">
          <table className={css["table"]}>
            <thead>
              <tr>
                {["Session", "State", "Run", "Prompt", "Slot", "Turns", "Running", "Tokens", "Reward", "Age", "Last error"].map((name) => (
                  <th key={name} scope="col">
                    {name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {sessions.map((row) => (
                <SessionRow key={row.session} row={row} nowMs={nowMs} onOpen={open} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function SessionRow({ row, nowMs, onOpen }: { row: Row; nowMs: number; onOpen: (session: string) => void }) {
  const follow = (event: MouseEvent) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    onOpen(row.session);
  };
  return (
    <tr onClick={follow}>
      <td>
        <a href={formatPlace({ run: null, session: row.session, turn: null })} className={css["link"]}>
          {row.session}
        </a>
      </td>
      <td title={row.reason ?? undefined}>
        <State state={row.state} />
      </td>
      <td className={css["cell"]}>{row.run}</td>
      <td className={css["cell"]} title={row.instance_id}>{row.instance_id}</td>
      <td className={css["number"]}>{!isGiven(row.group_size) ? count(row.slot) : `${count(row.slot)} of ${count(row.group_size)}`}</td>
      <td className={css["number"]}>{count(row.turns)}</td>
      <td className={css["number"]}>{count(row.running)}</td>
      <td className={css["number"]}>{count(row.sampled_tokens)}</td>
      <td className={css["number"]}>{figure(row.reward)}</td>
      <td>{span(nowMs - row.opened_ms)}</td>
      <td className={css["error"]} title={row.last_error ?? undefined}>
        {row.last_error ?? (row.failures > 0 ? counted(row.failures, "failure") : "")}
      </td>
    </tr>
  );
}
