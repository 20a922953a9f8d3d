import { useMemo } from "react";
import { Bars } from "@/charts/Bars";
import { Plot } from "@/charts/Plot";
import { bytes, count, counted, figure } from "@/parts/numbers";
import { format, INITIAL } from "@/state/url";
import { rate } from "./Live";
import { Ledger } from "./Ledger";
import { Leases, Makers, OpenGroups } from "./Waiting";
import type { LiveRun } from "./types";
import css from "./Live.module.css";

export function RunDetail({ run, nowMs }: { run: LiveRun; nowMs: number }) {
  const facts = [
    run.mode,
    `task ${run.task_type}`,
    `groups of ${run.group_size}`,
    run.version === null || run.version === undefined ? null : `weights ${run.version}`,
    run.step === null || run.step === undefined ? null : `step ${run.step}`,
    run.last_commit === null || run.last_commit === undefined ? null : `committed ${run.last_commit}`,
  ];
  return (
    <div className={css["detail"]}>
      <header className={css["title"]}>
        <h1>{run.run}</h1>
        <p className={css["quiet"]}>{facts.filter((fact) => fact !== null).join(" · ")}</p>
        {run.archive && (
          <a href={`/${format({ ...INITIAL, places: [`yard://${run.run}`], follow: true })}`} className={css["look"]}>
            Look at its rollouts
          </a>
        )}
      </header>
      <StuckList run={run} />
      <Rates run={run} nowMs={nowMs} />
      <Ledger run={run} />
      <div className={css["columns"]}>
        <Staleness run={run} />
        <Room run={run} />
      </div>
      <OpenGroups run={run} nowMs={nowMs} />
      <Leases run={run} nowMs={nowMs} />
      <Makers run={run} />
    </div>
  );
}

function StuckList({ run }: { run: LiveRun }) {
  if (run.stuck.length === 0) return <p className={css["fine"]}>Nothing is stuck.</p>;
  return (
    <ul className={css["stuck"]} aria-label="What is stuck">
      {run.stuck.map((trouble) => (
        <li key={trouble.kind + trouble.what}>
          <strong>{trouble.what}</strong>
          <p>{trouble.why}</p>
          <p className={css["next"]}>{trouble.next}</p>
        </li>
      ))}
    </ul>
  );
}

const CURVES = [
  ["admitted", "In", "--series-1"],
  ["read", "Out", "--series-3"],
  ["trained", "Trained", "--series-4"],
  ["dropped", "Dropped", "--series-2"],
] as const;

function Rates({ run, nowMs }: { run: LiveRun; nowMs: number }) {
  const { history } = run;
  const xs = useMemo(() => history.at_ms.map((at) => Math.round((at - nowMs) / 1000)), [history, nowMs]);
  return (
    <section className={css["rates"]} aria-label="Rates">
      {CURVES.map(([name, label, colour]) => (
        <figure key={name}>
          <figcaption>
            <span className={css["quiet"]}>{label}</span> <b>{rate(run.rates[name])}</b>
          </figcaption>
          <Curve xs={xs} values={history[name]} label={label} colour={colour} />
        </figure>
      ))}
    </section>
  );
}

function Curve({ xs, values, label, colour }: { xs: number[]; values: number[]; label: string; colour: string }) {
  const lines = useMemo(() => [{ label, colour, values }], [label, colour, values]);
  const ago = (seconds: number) => (seconds === 0 ? "now" : seconds > -60 ? `${-seconds} s` : `${Math.round(-seconds / 60)} min`);
  return <Plot label={`${label}, rollouts a second over the last ten minutes`} xs={xs} lines={lines} height={84} format={figure} xFormat={ago} small />;
}

function Staleness({ run }: { run: LiveRun }) {
  const { staleness } = run;
  const known = staleness?.behind ?? [];
  return (
    <section className={css["part"]} aria-label="Staleness">
      <h2>Staleness of what is held</h2>
      {!staleness ? (
        <p className={css["quiet"]}>Nobody said which weights are those of now: POST /api/runs/{run.run}/version.</p>
      ) : known.length === 0 ? (
        <p className={css["quiet"]}>Nothing is held.</p>
      ) : (
        <Bars
          label={`Held rollouts by ${staleness.unit} behind`}
          height={84}
          bars={known.map(({ behind, rollouts }) => ({ label: `${behind} ${staleness.unit} behind`, count: rollouts, colour: `var(--version-${Math.min(Math.max(behind, 0), 4)})` }))}
          ends={[`${known[0]?.behind ?? 0} behind`, `${known.at(-1)?.behind ?? 0} ${staleness.unit} behind`]}
        />
      )}
      {staleness && staleness.unknown > 0 && <p className={css["quiet"]}>{`${counted(staleness.unknown, "rollout")} of which nobody said what made them`}</p>}
      {staleness && staleness.left_out > 0 && <p className={css["quiet"]}>{`${count(staleness.left_out)} were not looked at`}</p>}
    </section>
  );
}

function Room({ run }: { run: LiveRun }) {
  const { room, groups } = run;
  const used = Math.max(room.rollouts / Math.max(1, room.rollouts_max), room.bytes / Math.max(1, room.bytes_max));
  const states: [string, number, string][] = [
    ["Open", groups.open, "wait for rollouts"],
    ["Asked about", groups.posed, "the generator's hooks decide"],
    ["Ready", groups.ready, "to be read"],
    ["With readers", groups.leased, "leased, not acked"],
  ];
  return (
    <section className={css["part"]} aria-label="Groups and room">
      <h2>Groups</h2>
      <dl className={css["states"]}>
        {states.map(([name, n, about]) => (
          <div key={name}>
            <dt title={about}>{name}</dt>
            <dd>{count(n)}</dd>
          </div>
        ))}
      </dl>
      <p className={css["quiet"]}>{`${count(room.rollouts)} of ${count(room.rollouts_max)} rollouts, ${bytes(room.bytes)} of ${bytes(room.bytes_max)}`}</p>
      <progress className={css["room"]} value={used} aria-label="Room that is used" />
    </section>
  );
}
