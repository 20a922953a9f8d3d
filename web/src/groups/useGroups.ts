/** Groups of the rows that the filter lets through, a page at a time. */

import { useCallback } from "react";
import { api, ask, type Schema } from "@/api/client";
import { useView } from "@/api/view";
import { PAGE_ROWS, usePaged } from "@/table/usePaged";

export type GroupSummary = Schema["GroupFigures"];
type GroupsPage = Schema["GroupsAnswer"];

export interface GroupsQuestion {
  filter: string;
  sort: string;
}

function askGroups(view: string, { filter, sort }: GroupsQuestion, page: number, signal: AbortSignal): Promise<GroupsPage> {
  const query = { filter, sort, offset: page * PAGE_ROWS, limit: PAGE_ROWS };
  return ask(api.GET("/api/view/{view}/groups", { params: { path: { view }, query }, signal }));
}

export function groupsOptions(view: string, asked: GroupsQuestion, page: number) {
  return {
    queryKey: ["in", view, "groups", asked.filter, asked.sort, page],
    queryFn: ({ signal }: { signal: AbortSignal }) => askGroups(view, asked, page, signal),
    gcTime: 60_000,
  };
}

const isLike = () => false;

export function useGroups(question: GroupsQuestion, first: number, last: number) {
  const { key } = useView();
  const options = (asked: GroupsQuestion, page: number) => groupsOptions(key, asked, page);
  const { pages, ...rest } = usePaged<GroupsQuestion, GroupsPage>({ question, options, isLike, first, last, isReversed: false });
  const group = useCallback((index: number) => pages.get(Math.floor(index / PAGE_ROWS))?.groups[index % PAGE_ROWS], [pages]);
  return { ...rest, group };
}
