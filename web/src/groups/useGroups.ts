/** Groups of the rows that the filter lets through, a page at a time. */

import { useCallback } from "react";
import { errorOf, fetchOrTell } from "@/api/client";
import { useView } from "@/api/view";
import { PAGE_ROWS, usePaged } from "@/table/usePaged";

export interface GroupSummary {
  group_id: string;
  prompt_hash: string | null;
  step: number | null;
  data_source: string | null;
  n: number;
  reward_mean: number | null;
  reward_std: number | null;
  reward_min: number | null;
  reward_max: number | null;
  passes: number;
  zero_variance: boolean;
  response_chars_mean: number | null;
  tokens_mean: number | null;
  truncated: number;
  lag_mean: number | null;
  /** Id of its first rollout. */
  first: string;
}

interface GroupsPage {
  total: number;
  groups: GroupSummary[];
  revision: number;
}

export interface GroupsQuestion {
  filter: string;
  sort: string;
}

async function askGroups(view: string, asked: GroupsQuestion, page: number, signal: AbortSignal): Promise<GroupsPage> {
  const query = new URLSearchParams({ filter: asked.filter, sort: asked.sort, offset: String(page * PAGE_ROWS), limit: String(PAGE_ROWS) });
  const response = await fetchOrTell(`/api/view/${view}/groups?${query}`, { signal });
  const body: unknown = await response.json();
  if (!response.ok) throw errorOf(response.status, body);
  return body as GroupsPage;
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
