import { count, counted } from "@/parts/numbers";
import type { LiveRun } from "./types";
import css from "./Live.module.css";

/** Seconds as people say them. */
export function span(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 120 ? `${minutes} min` : `${Math.round(minutes / 60)} h`;
}

export function OpenGroups({ run, nowMs }: { run: LiveRun; nowMs: number }) {
  if (run.open.length === 0) return null;
  return (
    <section className={css["part"]} aria-label="Open groups">
      <h2>{`Groups that wait the longest, ${count(run.open.length)} of ${count(run.groups.open)}`}</h2>
      <table className={css["table"]}>
        <thead>
          <tr>
            <th scope="col">Prompt</th>
            <th scope="col">Has</th>
            <th scope="col">Last written</th>
            <th scope="col">Decided in</th>
          </tr>
        </thead>
        <tbody>
          {run.open.slice(0, 8).map((group) => (
            <tr key={group.group}>
              <td className={css["long"]}>{group.instance}</td>
              <td>{`${group.have} of ${group.want}`}</td>
              <td>{`${span(nowMs - group.touched_ms)} ago`}</td>
              <td>{group.until_ms <= nowMs ? "now" : span(group.until_ms - nowMs)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

export function Leases({ run, nowMs }: { run: LiveRun; nowMs: number }) {
  if (run.leases.length === 0) return null;
  return (
    <section className={css["part"]} aria-label="Leases">
      <h2>{`With readers, ${count(run.leases.length)} of ${counted(run.leases_out, "lease")}`}</h2>
      <table className={css["table"]}>
        <thead>
          <tr>
            <th scope="col">Reader</th>
            <th scope="col">Groups</th>
            <th scope="col">Rollouts</th>
            <th scope="col">For</th>
            <th scope="col">Expires in</th>
          </tr>
        </thead>
        <tbody>
          {run.leases.slice(0, 8).map((lease) => (
            <tr key={lease.lease}>
              <td className={css["long"]}>{lease.reader}</td>
              <td>{count(lease.groups)}</td>
              <td>{count(lease.rollouts)}</td>
              <td>{span(nowMs - lease.granted_ms)}</td>
              <td>{lease.auto ? "acked by itself" : span(lease.until_ms - nowMs)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** Who makes the rollouts, and where they are kept. */
export function Makers({ run }: { run: LiveRun }) {
  const { generator, archive } = run;
  if (!generator && !archive) return null;
  return (
    <div className={css["columns"]}>
      {generator && (
        <section className={css["part"]} aria-label="Generator">
          <h2>Generator: {generator.state}</h2>
          <p className={css["quiet"]}>{[generator.kind, generator.restarts > 0 ? `started again ${counted(generator.restarts, "time")}` : null, generator.told].filter(Boolean).join(" · ")}</p>
          {generator.problem && <p role="alert">{generator.problem}</p>}
          {generator.log.length > 0 && <pre className={css["log"]}>{generator.log.slice(-8).join("\n")}</pre>}
        </section>
      )}
      {archive && (
        <section className={css["part"]} aria-label="Archive">
          <h2>Archive</h2>
          <p className={css["long"]}>{archive.place}</p>
          <p className={css["quiet"]}>{archive.behind === 0 ? "Everything is in it." : `${counted(archive.behind, "record")} behind`}</p>
          {archive.missing > 0 && <p className={css["quiet"]}>{`${counted(archive.missing, "rollout")} had left the run before it was archived`}</p>}
          {archive.error && <p role="alert">{archive.error}</p>}
        </section>
      )}
    </div>
  );
}
