/** What people said of the rows in sight: a verdict, tags, comments. Asked for a page at a time. */

import { useQueries } from "@tanstack/react-query";
import { useCallback } from "react";
import { api, ask, type Schema } from "@/api/client";
import { useView } from "@/api/view";

export type Mark = Schema["Marks"];

type Marks = Record<string, Mark>;

function askMarks(ids: string[], signal: AbortSignal): Promise<Marks> {
  return ask(api.POST("/api/view/annotations/of", { body: { ids }, signal }));
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
