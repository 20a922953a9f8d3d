/** What the figures of a filter are made of. */

import { api, ask } from "@/api/client";
import { useAsk, useView } from "@/api/view";
import type { StepPoint } from "@/curves/metrics";
import { grouped } from "@/parts/grouped";

/** How many different prompts and groups there are. */
export function useDistinct() {
  const { filter } = useView();
  return useAsk(["distinct", filter], async (view) => {
    const query = { filter, fields: "prompt_hash,group_id", values: 1 };
    const facets = await ask(api.GET("/api/view/{view}/facets", { params: { path: { view }, query } }));
    const distinct = (field: string) => facets.find((facet) => facet.field === field)?.distinct ?? 0;
    return { prompts: distinct("prompt_hash"), groups: distinct("group_id") };
  });
}

export interface Total {
  series: string;
  n: number;
  reward: number | null;
  pass: number | null;
  length: number | null;
  truncated: number;
  dead: number | null;
  lag: number | null;
}

/** The steps of a series taken together; each mean counts as often as it has rollouts, or groups. */
export function total(series: string, points: StepPoint[]): Total {
  const n = points.reduce((sum, point) => sum + point.n, 0);
  const groups = points.reduce((sum, point) => sum + point.n_groups, 0);
  const mean = (value: (point: StepPoint) => number | null | undefined, weight: (point: StepPoint) => number) => {
    const given = points.filter((point) => typeof value(point) === "number");
    const of = given.reduce((sum, point) => sum + weight(point), 0);
    return of === 0 ? null : given.reduce((sum, point) => sum + (value(point) ?? 0) * weight(point), 0) / of;
  };
  const byRollout = (point: StepPoint) => point.n;
  const byGroup = (point: StepPoint) => point.n_groups;
  return {
    series,
    n,
    reward: mean((point) => point.reward_mean, byRollout),
    pass: mean((point) => point.pass_at_k, byGroup),
    length: mean((point) => point.response_chars_mean, byRollout),
    truncated: n === 0 ? 0 : points.reduce((sum, point) => sum + point.truncated, 0) / n,
    dead: groups === 0 ? null : points.reduce((sum, point) => sum + point.dead_groups, 0) / groups,
    lag: mean((point) => point.lag_mean, byRollout),
  };
}

export function totals(points: StepPoint[]): Total[] {
  const series = grouped(points, (point) => point.series ?? "");
  return [...series].map(([name, some]) => total(name, some)).sort((a, b) => b.n - a.n);
}
