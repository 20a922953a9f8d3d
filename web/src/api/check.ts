/** Whether a filter parses. */

import { useQuery } from "@tanstack/react-query";
import { api, ApiError, ask } from "./client";

/**
 * What the server says of a filter: the refusal, null if it is good, undefined while nothing is known. A refusal is an
 * answer here and not an error: what asks anew for an error would show the filter as good in between.
 */
export function useCheck(view: string, filter: string, indexed: boolean, enabled = true): ApiError | null | undefined {
  const isEmpty = filter.trim() === "";
  const { data } = useQuery({
    // A field may turn up while rows are still being indexed, so that what was refused is understood later.
    queryKey: ["in", view, "check", filter, indexed],
    queryFn: async () => {
      try {
        await ask(api.GET("/api/view/{view}/check", { params: { path: { view }, query: { filter } } }));
        return { refusal: null };
      } catch (error) {
        if (error instanceof ApiError && error.status === 400) return { refusal: error };
        throw error;
      }
    },
    enabled: enabled && !isEmpty,
    staleTime: Infinity,
    refetchInterval: (query) => (!indexed && query.state.data?.refusal ? 1000 : false),
  });
  return isEmpty ? null : data?.refusal;
}
