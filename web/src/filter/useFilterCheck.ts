import { useQuery } from "@tanstack/react-query";
import { api, ApiError, ask } from "@/api/client";
import { useView } from "@/api/view";

/** Whether a filter parses; neither good nor wrong while the answer is on its way. */
export function useFilterCheck(filter: string, enabled = true): { error: ApiError | null; isGood: boolean } {
  const { key, answer } = useView();
  const wanted = filter.trim() !== "" && enabled;
  const { error, isSuccess } = useQuery({
    queryKey: ["in", key, "check", filter, answer.indexing.done],
    queryFn: () => ask(api.GET("/api/view/{view}/check", { params: { path: { view: key }, query: { filter } } })),
    enabled: wanted,
    staleTime: Infinity,
  });
  return {
    error: wanted && error instanceof ApiError && !error.isAway ? error : null,
    isGood: filter.trim() === "" || isSuccess,
  };
}
