/** What can be drawn over the steps, and the clauses that a brush makes. */

import type { Schema } from "@/api/client";
import type { Line } from "@/charts/Plot";
import { grouped } from "@/parts/grouped";
import { compact, figure } from "@/parts/numbers";

export type StepPoint = Schema["StepAnswer"];

export interface Metric {
  label: string;
  about: string;
  of: (point: StepPoint) => number | null;
  format: (value: number) => string;
}

const percent = (value: number) => `${(value * 100).toFixed(value > 0 && value < 0.1 ? 1 : 0)}%`;
const part = (n: number, of: number) => (of > 0 ? n / of : null);

export const METRICS: Record<string, Metric> = {
  reward_mean: { label: "Reward", about: "mean reward, with one standard deviation around it", of: (p) => p.reward_mean ?? null, format: figure },
  pass_at_k: { label: "pass@k", about: "share of groups with at least one pass", of: (p) => p.pass_at_k ?? null, format: percent },
  response_chars_mean: { label: "Length", about: "mean characters of all answers", of: (p) => p.response_chars_mean ?? null, format: compact },
  tokens_mean: { label: "Tokens", about: "mean sampled tokens", of: (p) => p.tokens_mean ?? null, format: compact },
  truncated: { label: "Truncated", about: "share of rollouts that ended at a limit", of: (p) => part(p.truncated, p.n), format: percent },
  dead_groups: { label: "Dead groups", about: "share of groups whose rewards are all equal", of: (p) => part(p.dead_groups, p.n_groups), format: percent },
  lag_mean: { label: "Staleness", about: "mean steps between the weights that sampled and the step that trained", of: (p) => p.lag_mean ?? null, format: figure },
  n: { label: "Rollouts", about: "rollouts of the step", of: (p) => p.n, format: compact },
};

export const metric = (name: string): Metric => METRICS[name] ?? (METRICS["reward_mean"] as Metric);

const COLOURS = 6;

export interface Drawn {
  xs: number[];
  lines: Line[];
  /** Series that there are; at most six are drawn, those with the most rollouts. */
  seriesTotal: number;
}

/** One line, or one for each series. */
export function draw(points: StepPoint[], name: string): Drawn {
  const { of, label } = metric(name);
  const xs = [...new Set(points.map((point) => point.step))].sort((a, b) => a - b);
  const at = new Map(xs.map((step, i) => [step, i]));
  const bySeries = grouped(points, (point) => point.series ?? "");
  const size = (some: StepPoint[]) => some.reduce((sum, point) => sum + point.n, 0);
  const chosen = [...bySeries].sort((a, b) => size(b[1]) - size(a[1])).slice(0, COLOURS);
  const lines = chosen.map(([series, some], i): Line => {
    const column = (value: (point: StepPoint) => number | null) => {
      const values = new Array<number | null>(xs.length).fill(null);
      for (const point of some) values[at.get(point.step) ?? 0] = value(point);
      return values;
    };
    const line = { label: series === "" ? label : series, colour: `--series-${i + 1}`, values: column(of) };
    if (name !== "reward_mean" || bySeries.size > 1) return line;
    const spread = (sign: 1 | -1) => column((p) => (typeof p.reward_mean === "number" && typeof p.reward_std === "number" ? p.reward_mean + sign * p.reward_std : null));
    return { ...line, low: spread(-1), high: spread(1) };
  });
  return { xs, lines, seriesTotal: bySeries.size };
}

const STEPS = /^step (?:== (-?\d+)|>= (-?\d+) AND step <= (-?\d+))$/;

/** The clause for some steps, and the steps of a clause. */
export function stepsClause(from: number, to: number): string {
  return from === to ? `step == ${from}` : `step >= ${from} AND step <= ${to}`;
}

export function stepsOf(clause: string): [number, number] | null {
  const match = STEPS.exec(clause);
  if (!match) return null;
  const [, one, from, to] = match;
  return one !== undefined ? [Number(one), Number(one)] : [Number(from), Number(to)];
}
