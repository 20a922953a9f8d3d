import { count } from "@/parts/numbers";
import { equals, format, INITIAL } from "@/state/url";
import type { LiveRun } from "./types";
import css from "./Live.module.css";

const FATES = [
  ["held", "Held", "--series-1"],
  ["leased", "With readers", "--series-3"],
  ["trained", "Trained", "--series-4"],
  ["dropped", "Dropped", "--series-2"],
] as const;

/** The books: every rollout that was ever admitted is in exactly one of four places. */
export function Ledger({ run }: { run: LiveRun }) {
  const { books } = run;
  const whole = Math.max(1, books.admitted);
  const reasons = Object.entries(books.dropped_by_reason)
    .filter(([, n]) => n > 0)
    .sort((a, b) => b[1] - a[1]);
  const most = Math.max(1, ...reasons.map(([, n]) => n));
  return (
    <section className={css["part"]} aria-label="Books">
      <h2>
        {`Books: ${count(books.admitted)} admitted`} <span className={books.balanced ? css["balanced"] : css["unbalanced"]}>{books.balanced ? "balanced" : "not balanced"}</span>
      </h2>
      <div className={css["fates"]} role="img" aria-label={FATES.map(([name, label]) => `${label} ${count(books[name])}`).join(", ")}>
        {FATES.map(([name, label, colour]) => (
          <i key={name} title={`${label}: ${count(books[name])}`} style={{ width: `${(books[name] / whole) * 100}%`, background: `var(${colour})` }} />
        ))}
      </div>
      <dl className={css["states"]}>
        {FATES.map(([name, label, colour]) => (
          <div key={name}>
            <dt>
              <i className={css["dot"]} style={{ background: `var(${colour})` }} />
              {label}
            </dt>
            <dd>{count(books[name])}</dd>
          </div>
        ))}
      </dl>
      {reasons.length > 0 && (
        <>
          <h3 className={css["quiet"]}>Dropped, by reason</h3>
          <ul className={css["reasons"]}>
            {reasons.map(([reason, n]) => (
              <li key={reason}>
                <Reason run={run} reason={reason} />
                <span className={css["track"]}>
                  <i style={{ width: `${(n / most) * 100}%` }} />
                </span>
                <span>{count(n)}</span>
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}

/** Opens the rollouts behind the number, where they are kept. */
function Reason({ run, reason }: { run: LiveRun; reason: string }) {
  if (!run.archive) return <span title="They can be looked at when the server keeps them: --archive">{reason}</span>;
  const clauses = [equals("status", "dropped"), equals("reason", reason)];
  return <a href={`/${format({ ...INITIAL, places: [`yard://${run.run}`], clauses })}`}>{reason}</a>;
}
