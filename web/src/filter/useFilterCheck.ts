import { useCheck } from "@/api/check";
import type { ApiError } from "@/api/client";
import { useView } from "@/api/view";

/** Whether a filter parses; neither good nor wrong while the answer is on its way. */
export function useFilterCheck(filter: string, enabled = true): { error: ApiError | null; isGood: boolean } {
  const { key, answer } = useView();
  const refusal = useCheck(key, filter, answer.indexing.done, enabled);
  return { error: refusal ?? null, isGood: refusal === null };
}
