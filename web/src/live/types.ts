/** What the overview is made of, as the server tells it. */

export interface Stuck {
  kind: string;
  what: string;
  why: string;
  next: string;
}
export interface LiveRun {
  run: string;
  mode: string;
  task_type: string;
  group_size: number;
  version?: number | null;
  step?: number | null;
  last_commit?: number | null;
  books: { admitted: number; held: number; leased: number; trained: number; dropped: number; dropped_by_reason: Record<string, number>; balanced: boolean; held_bytes: number };
  room: { rollouts: number; rollouts_max: number; bytes: number; bytes_max: number };
  groups: { open: number; posed: number; ready: number; leased: number };
  pool?: number | null;
  rates: { admitted: number; read: number; trained: number; dropped: number };
  history: { at_ms: number[]; admitted: number[]; read: number[]; trained: number[]; dropped: number[]; held: number[] };
  staleness?: { unit: string; behind: { behind: number; rollouts: number }[]; unknown: number; left_out: number } | null;
  leases_out: number;
  leases: { lease: number; reader: string; auto: boolean; groups: number; rollouts: number; granted_ms: number; until_ms: number }[];
  open: { group: number; instance: string; have: number; want: number; opened_ms: number; touched_ms: number; until_ms: number }[];
  generator?: { state: string; task_type: string; kind?: string | null; restarts: number; told?: string | null; problem?: string | null; log: string[] } | null;
  archive?: { place: string; behind: number; missing: number; error?: string | null } | null;
  stuck: Stuck[];
}
export interface LiveAnswer {
  now_ms: number;
  began_ms: number;
  runs: LiveRun[];
}
