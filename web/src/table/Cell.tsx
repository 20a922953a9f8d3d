/** One value of a row, drawn by what it is. */

import { memo } from "react";
import { compact, figure, rewardColour, share } from "@/parts/numbers";
import { FLAGS, type Column, type RewardRange } from "./columns";
import type { Row } from "./usePages";
import css from "./Cell.module.css";

interface Props {
  column: Column;
  row: Row;
  range: RewardRange;
}

export function Cell({ column, row, range }: Props) {
  const value = row.value(column.name);
  if (column.name === "flags") return <Flags row={row} />;
  // A column that was added a moment ago; its values are on their way.
  if (value === undefined) return <span className={css["waiting"]} />;
  if (value === null) return <span className={css["none"]}>–</span>;
  if (column.name === "reward" && typeof value === "number") return <Reward value={value} range={range} />;
  if (column.name.startsWith("reward.") && typeof value === "number") return <Reward value={value} range={range} />;
  if (column.name === "status") return <Status status={text(value)} reason={row.value("reason")} />;
  if (column.name === "lag" || column.name === "version") return <Age column={column.name} row={row} />;
  if (column.kind === "flag") return value === true || value === 1 ? <span className={css["word"]}>{FLAGS[column.name]?.word ?? column.label}</span> : null;
  if (column.kind === "time" && typeof value === "number") return <Time secs={value} />;
  if (typeof value === "number") return <span title={String(value)}>{isLength(column.name) ? compact(value) : figure(value)}</span>;
  return (
    <span className={isName(column.name) ? css["mono"] : undefined} title={text(value)}>
      {text(value)}
    </span>
  );
}

const isLength = (name: string) => name.endsWith("_chars") || name === "tokens";
const isName = (name: string) => ["id", "uid", "group_id", "prompt_hash"].includes(name);

export function text(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

export const Reward = memo(function Reward({ value, range }: { value: number; range: RewardRange }) {
  const at = share(value, range.low, range.high);
  return (
    <span className={css["reward"]} title={String(value)}>
      <span className={css["track"]}>
        <span className={css["bar"]} style={{ width: `${Math.max(8, at * 100)}%`, background: rewardColour(at) }} />
      </span>
      <span className={css["number"]}>{figure(value)}</span>
    </span>
  );
});

function Status({ status, reason }: { status: string; reason: unknown }) {
  const why = typeof reason === "string" ? reason : null;
  return (
    <span className={css["status"]} data-status={status} title={why === null ? status : `${status}: ${why}`}>
      {status}
      {why !== null && <span className={css["why"]}>: {why}</span>}
    </span>
  );
}

/** The older the weights, the further along the stepped scale; a split square is sampled by several. */
export function ageColour(lag: number): string {
  return `var(--version-${Math.min(4, Math.max(0, Math.round(lag)))})`;
}

function Age({ column, row }: { column: "lag" | "version"; row: Row }) {
  const lag = row.value("lag");
  const isMixed = row.value("mixed") === true || row.value("mixed") === 1;
  const version = row.value("version");
  const said = [
    typeof version === "number" ? `version ${version}` : "",
    typeof lag === "number" ? `${lag} ${lag === 1 ? "step" : "steps"} behind when trained on` : "",
    isMixed ? "tokens of more than one version" : "",
  ];
  return (
    <span className={css["age"]} title={said.filter(Boolean).join(", ")}>
      {typeof lag === "number" && <span className={css["square"]} data-mixed={isMixed} style={{ color: ageColour(lag) }} />}
      <span className={css["number"]}>{figure(row.value(column) as number)}</span>
      {isMixed && <span className={css["mixed"]}>mix</span>}
    </span>
  );
}

function Flags({ row }: { row: Row }) {
  const on = Object.entries(FLAGS).filter(([name]) => row.value(name) === true || row.value(name) === 1);
  return (
    <span className={css["words"]} title={on.map(([, flag]) => `${flag.word}: ${flag.about}`).join("\n")}>
      {on.map(([name, flag]) => (
        <span key={name} className={css["word"]}>
          {flag.word}
        </span>
      ))}
    </span>
  );
}

const day = new Intl.DateTimeFormat("en-CA", { month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });

function Time({ secs }: { secs: number }) {
  const date = new Date(secs * 1000);
  if (Number.isNaN(date.getTime())) return <>{secs}</>;
  return (
    <time dateTime={date.toISOString()} title={date.toISOString()}>
      {day.format(date).replace(",", "")}
    </time>
  );
}
