/** The columns that can be shown: those of the catalog, the extras of this view, and one that gathers flags. */

import { useMemo } from "react";
import { api, ask, type Schema } from "@/api/client";
import { useAsk, useView } from "@/api/view";
import { useViewState } from "@/state/location";

export interface Column {
  name: string;
  label: string;
  about: string;
  /** `integer`, `real`, `text`, `flag`, `time`, or `extra` where rows may differ. */
  kind: string;
  /** Columns of the server that it is drawn from. */
  needs: string[];
  width: number;
  isNumber: boolean;
  /** Gathered ones stand for several columns, and cannot be sorted by. */
  isSortable: boolean;
}

/** What the gathered flags are called in a row. */
export const FLAGS: Record<string, { word: string; about: string }> = {
  leak: { word: "leak", about: "the answer stands in the prompt or in a tool's result" },
  tampering: { word: "tampering", about: "touches the tests that grade it" },
  format_only: { word: "format only", about: "rewarded for its form alone" },
  truncated: { word: "cut", about: "generation ended at a limit" },
  unclosed: { word: "unclosed", about: "a <think> block is never closed" },
  dead_group: { word: "no gradient", about: "all rewards of its group are equal" },
  odd: { word: "odd", about: "something in it is not as the format says" },
  validate: { word: "validation", about: "made for validation, not for training" },
};

const LABELS: Record<string, string> = {
  data_source: "source",
  sample_index: "sample",
  rollout_n: "n",
  experiment_name: "experiment",
  response_chars: "chars",
  prompt_chars: "prompt chars",
  reasoning_chars: "reasoning",
  stop_reason: "stop",
  message_count: "messages",
  tool_calls: "tools",
  prompt_hash: "prompt",
  group_id: "group",
  source_file: "file",
};

const WIDTHS: Record<string, number> = {
  step: 44,
  reward: 92,
  data_source: 112,
  status: 128,
  version: 72,
  lag: 44,
  turns: 52,
  response_chars: 56,
  tokens: 60,
  stop_reason: 72,
  flags: 96,
  source_file: 200,
};

/** Those that most runs are read by; a status and the like only where a run has one. */
const USUAL = ["step", "reward", "data_source", "status", "lag", "response_chars", "flags"];
const ONLY_IF_KNOWN = ["status", "lag"];

const NEEDS: Record<string, string[]> = {
  status: ["status", "reason"],
  version: ["version", "lag", "mixed"],
  lag: ["lag", "version", "mixed"],
};

function column(name: string, kind: string, about: string, known: Set<string>): Column {
  const isNumber = kind === "integer" || kind === "real";
  const width = WIDTHS[name] ?? (kind === "time" ? 124 : isNumber || kind === "flag" ? 80 : 112);
  const needs = (NEEDS[name] ?? [name]).filter((need) => need === name || known.has(need));
  return { name, kind, about, label: LABELS[name] ?? name.replaceAll("_", " "), needs, width, isNumber, isSortable: true };
}

export function columnsOf(answer: Pick<Schema["ViewAnswer"], "columns" | "extras">): Map<string, Column> {
  const known = new Set(answer.columns.map(({ name }) => name));
  const needs = Object.keys(FLAGS).filter((name) => known.has(name));
  const flags: Column = {
    ...column("flags", "flags", "what to look at: cut off, unclosed, leaks and the like, as words", known),
    needs,
    isSortable: false,
  };
  const all = [
    ...answer.columns.map(({ name, kind, about }) => column(name, kind, about, known)),
    flags,
    column("source_file", "text", "the file that it stands in", known),
    column("id", "text", "its name by content", known),
    ...answer.extras.filter((name) => !known.has(name)).map((name) => column(name, "extra", extraAbout(name), known)),
  ];
  return new Map(all.map((one) => [one.name, one]));
}

function extraAbout(name: string): string {
  return name.startsWith("reward.") ? "a part of the reward" : "an attribute of these rollouts";
}

/** What the server is asked for so that these can be drawn. */
export function neededBy(columns: Column[]): string {
  return [...new Set(columns.flatMap((one) => one.needs))].sort().join();
}

/** How high and low rewards go in the whole view, whatever the filter: a colour means the same all along. */
export interface RewardRange {
  low: number;
  high: number;
}

/** One look over all rows: which columns have something in them, and the range of rewards. */
function useOverview() {
  return useAsk(["overview"], (view) =>
    ask(
      api.GET("/api/view/{view}/facets", {
        params: { path: { view }, query: { fields: ["reward", ...ONLY_IF_KNOWN].join(), values: 1 } },
      }),
    ),
  );
}

export function useRewardRange(): RewardRange {
  const range = useOverview().data?.find((facet) => facet.field === "reward")?.range;
  const [from = 0, to = 1] = range ?? [];
  const [low, high] = [Math.min(0, from), Math.max(1, to)];
  return useMemo(() => ({ low, high }), [low, high]);
}

export interface Columns {
  all: Map<string, Column>;
  chosen: Column[];
  usual: string[];
}

export function useColumns(): Columns {
  const { answer } = useView();
  const [{ columns: names }] = useViewState();
  const overview = useOverview().data;
  const all = useMemo(() => columnsOf({ columns: answer.columns, extras: answer.extras }), [answer.columns, answer.extras]);
  const usual = useMemo(() => {
    const empty = new Set(overview?.filter((facet) => facet.distinct === 0).map((facet) => facet.field));
    return USUAL.filter((name) => !ONLY_IF_KNOWN.includes(name) || (overview !== undefined && !empty.has(name)));
  }, [overview]);
  const chosen = useMemo(() => {
    // A name that this view does not know, from a link to another run, is not asked for.
    return (names ?? usual).map((name) => all.get(name)).filter((one) => one !== undefined);
  }, [names, usual, all]);
  return useMemo(() => ({ all, chosen, usual }), [all, chosen, usual]);
}
