/** What is graded, by what and by whom, as the form has it and as the server is asked. */

import type { Schema } from "@/api/client";

export type Metric = Schema["Metric"];

export interface Wanted {
  /** Names of built-in metrics. */
  metrics: string[];
  own: OwnMetric[];
  rows: "filter" | "open";
  /** Rollouts at most. */
  limit: number;
  /** Empty for the server's own. */
  model: string;
  baseUrl: string;
}

/** A metric as it is typed. */
export interface OwnMetric {
  name: string;
  description: string;
  kind: "float" | "int" | "bool";
  min: string;
  max: string;
}

export const NEW_METRIC: OwnMetric = { name: "", description: "", kind: "float", min: "0", max: "1" };

function limitOf(text: string): { value: number } | null {
  const value = Number(text);
  return text.trim() === "" || Number.isNaN(value) ? null : { value };
}

function metricOf({ name, description, kind, min, max }: OwnMetric): Metric {
  const [low, high] = kind === "bool" ? [null, null] : [limitOf(min), limitOf(max)];
  return {
    name: name.trim(),
    description: description.trim(),
    // The description of the API mixes this kind up with that of annotations.
    kind,
    ...(low && { min: low.value }),
    ...(high && { max: high.value }),
  };
}

/** The body of a job or its estimate. */
export function bodyOf(wanted: Wanted, filter: string, open: string | null): Schema["GradeAsked"] {
  return {
    ...(wanted.rows === "open" && open !== null ? { ids: [open] } : { filter }),
    metrics: [...wanted.metrics, ...wanted.own.map(metricOf)],
    limit: wanted.limit,
    ...(wanted.model.trim() === "" ? {} : { model: wanted.model.trim() }),
    ...(wanted.baseUrl === "" ? {} : { base_url: wanted.baseUrl }),
  };
}

/** What tokens cost at prices for a million of them; null where no price is known. */
export function costOf(tokens: { input_tokens: number; output_tokens: number }, input: string, output: string): number | null {
  const [a, b] = [limitOf(input), limitOf(output)];
  if (!a && !b) return null;
  return (tokens.input_tokens * (a?.value ?? 0) + tokens.output_tokens * (b?.value ?? 0)) / 1e6;
}

const KEPT = "metrics";

/** Metrics of one's own are written once and used for weeks. */
export function keptMetrics(): OwnMetric[] {
  try {
    const kept = JSON.parse(localStorage.getItem(KEPT) ?? "[]") as unknown;
    return Array.isArray(kept) ? kept.map((metric: Partial<OwnMetric>) => ({ ...NEW_METRIC, ...metric })) : [];
  } catch {
    return [];
  }
}

export function keepMetrics(metrics: OwnMetric[]) {
  localStorage.setItem(KEPT, JSON.stringify(metrics));
}
