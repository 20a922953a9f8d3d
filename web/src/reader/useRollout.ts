import { api, ask, type Schema } from "@/api/client";
import { useAsk } from "@/api/view";

export type Rollout = Schema["RolloutAnswer"];

/** One rollout, read when it is opened. */
export function useRollout(id: string | null) {
  return useAsk(
    ["rollout", id],
    (view) => ask(api.GET("/api/view/{view}/rollouts/{id}", { params: { path: { view, id: id ?? "" } } })),
    { enabled: id !== null, live: false },
  );
}
