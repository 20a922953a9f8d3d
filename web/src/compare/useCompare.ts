/** Two runs on the prompts that both have. */

import { errorOf, fetchOrTell } from "@/api/client";
import { useAsk, useOpen, useView } from "@/api/view";

export interface Side {
  n: number;
  reward_mean: number | null;
  /** Id of the rollout with the highest reward. */
  best: string | null;
}

export interface Pair {
  prompt_hash: string;
  /** The beginning of what was asked. */
  prompt: string;
  here: Side;
  there: Side;
  /** There minus here. */
  delta: number;
}

export interface Comparison {
  shared: number;
  only_here: number;
  only_there: number;
  mean_here: number | null;
  mean_there: number | null;
  delta_mean: number | null;
  delta_low: number | null;
  delta_high: number | null;
  better: number;
  worse: number;
  same: number;
  pairs: Pair[];
}

export const PAIRS_AT_ONCE = 100;

export function useCompare(against: string[], sort: string, offset: number) {
  const { filter } = useView();
  const other = useOpen(against);
  const key = other.answer?.view;
  const done = other.answer?.indexing.done ?? false;
  const comparison = useAsk(
    ["compare", key, done, filter, sort, offset],
    async (view) => {
      const query = new URLSearchParams({ with: key ?? "", filter, sort, offset: String(offset), limit: String(PAIRS_AT_ONCE) });
      const response = await fetchOrTell(`/api/view/${view}/compare?${query}`);
      const body: unknown = await response.json();
      if (!response.ok) throw errorOf(response.status, body);
      return body as Comparison;
    },
    { enabled: key !== undefined },
  );
  return { comparison, error: other.error ?? comparison.error, isIndexing: key !== undefined && !done };
}
