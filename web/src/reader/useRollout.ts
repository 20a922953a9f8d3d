import type { QueryClient } from "@tanstack/react-query";
import { api, ask, type Schema } from "@/api/client";
import { useAsk } from "@/api/view";

/** Something that looks wrong, and where. */
export type Detection = Schema["DetectionAnswer"];

export type Rollout = Schema["RolloutAnswer"];

/** Whether its row is no rollout at all. */
export function isBroken(rollout: Rollout): boolean {
  return typeof rollout.problem === "string";
}

/** What a link knew besides the id, in case the id is gone. */
export interface Hints {
  rollout_n?: number;
  group_id?: string;
}

const read = (view: string, id: string, hints: Hints = {}): Promise<Rollout> =>
  ask(api.GET("/api/view/{view}/rollouts/{id}", { params: { path: { view, id }, query: hints } }));

/** One rollout, read when it is opened. */
export function useRollout(id: string | null, hints?: Hints) {
  return useAsk(["rollout", id], (view) => read(view, id ?? "", hints), { enabled: id !== null, live: false });
}

/** The same from outside of a render, out of the same cache. */
export function readRollout(queries: QueryClient, view: string, id: string): Promise<Rollout> {
  return queries.query({ queryKey: ["in", view, "rollout", id], queryFn: () => read(view, id), staleTime: "static" });
}

/** A copied link knows more than the id. */
export function hintsOfLink(): Hints {
  const params = new URLSearchParams(location.search);
  const [n, group] = [params.get("n"), params.get("g")];
  return {
    ...(n !== null && /^-?\d{1,15}$/.test(n) ? { rollout_n: Number(n) } : {}),
    ...(group !== null && /^-?\d{1,20}$/.test(group) ? { group_id: group } : {}),
  };
}
