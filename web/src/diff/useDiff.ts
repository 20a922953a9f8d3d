import { useQuery } from "@tanstack/react-query";
import type { Rollout } from "@/reader/useRollout";
import type { DiffResult } from "./rows";

/** Asks a worker of its own, which ends with the answer or when nobody waits for it any more. */
function inWorker(left: Rollout, right: Rollout, signal: AbortSignal): Promise<DiffResult> {
  const worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
  const result = new Promise<DiffResult>((done, failed) => {
    worker.onmessage = (event: MessageEvent<DiffResult>) => done(event.data);
    worker.onerror = (event) => failed(new Error(event.message || "the comparison did not start; load the page again"));
    signal.onabort = () => failed(new DOMException("not needed any more", "AbortError"));
  });
  worker.postMessage({ left: left.pieces, right: right.pieces });
  return result.finally(() => worker.terminate());
}

/** The differences of two rollouts. Both are named by their content, so that an answer stays true. */
export function useDiff(left: Rollout | undefined, right: Rollout | undefined) {
  return useQuery({
    queryKey: ["diff", left?.id, right?.id],
    queryFn: ({ signal }) => {
      if (!left || !right) throw new Error("two rollouts are needed");
      return inWorker(left, right, signal);
    },
    enabled: left !== undefined && right !== undefined,
    staleTime: Infinity,
    // A few: the diff of two large rollouts is large itself.
    gcTime: 60_000,
  });
}
