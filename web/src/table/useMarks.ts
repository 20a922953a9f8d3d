/** What people said of the rows in sight: a verdict, tags, comments. Asked for a page at a time. */

import { useQueries } from "@tanstack/react-query";
import { useCallback } from "react";
import { errorOf, fetchOrTell } from "@/api/client";
import { useView } from "@/api/view";

export interface Mark {
  verdict: string | null;
  tags: string[];
  comments: number;
  grades: Record<string, number>;
}

type Marks = Record<string, Mark>;

async function askMarks(ids: string[], signal: AbortSignal): Promise<Marks> {
  const init = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ ids }), signal };
  const response = await fetchOrTell("/api/view/annotations/of", init);
  // A server from before there were marks.
  if (response.status === 404 || response.status === 405) return {};
  const body: unknown = await response.json();
  if (!response.ok) throw errorOf(response.status, body);
  return body as Marks;
}

/** Ids in as many lists as there are pages, so that scrolling on asks for the new ones alone. */
export function useMarks(pages: string[][]): Marks {
  const { key } = useView();
  return useQueries({
    queries: pages.map((ids) => ({
      queryKey: ["in", key, "annotations", "of", ids],
      queryFn: ({ signal }: { signal: AbortSignal }) => askMarks(ids, signal),
      enabled: ids.length > 0,
    })),
    combine: useCallback((results: { data: Marks | undefined }[]) => Object.assign({}, ...results.map((result) => result.data ?? {})) as Marks, []),
  });
}
