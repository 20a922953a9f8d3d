/** Two runs on the prompts that both have. */

import { api, ask, type Schema } from "@/api/client";
import { useAsk, useOpen, useView } from "@/api/view";

export type Comparison = Schema["CompareAnswer"];
export type Pair = Comparison["pairs"][number];
export type Side = Pair["here"];

export const PAIRS_AT_ONCE = 100;

export function useCompare(against: string[], sort: string, offset: number) {
  const { filter } = useView();
  const other = useOpen(against);
  const key = other.answer?.view;
  const isIndexed = other.answer?.indexing.done ?? false;
  const comparison = useAsk(
    ["compare", key, isIndexed, filter, sort, offset],
    (view) => {
      const query = { with: key ?? "", filter, sort, offset, limit: PAIRS_AT_ONCE };
      return ask(api.GET("/api/view/{view}/compare", { params: { path: { view }, query } }));
    },
    { enabled: key !== undefined },
  );
  return { comparison, error: other.error ?? comparison.error, isIndexing: key !== undefined && !isIndexed };
}
