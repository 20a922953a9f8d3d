import { api, ask, type Schema } from "@/api/client";
import { useAsk } from "@/api/view";

/** One rollout among its siblings. */
export interface Sibling {
  id: string;
  step: number | null;
  reward: number | null;
  advantage: number | null;
  index: number | null;
  version: number | null;
  lag: number | null;
  mixed: boolean;
  status: string | null;
  reason: string | null;
  stopReason: string | null;
  truncated: boolean;
  turns: number | null;
  chars: number | null;
  tokens: number | null;
  /** As text: it does not fit a number of the browser. */
  groupId: string | null;
}

export type GroupAnswer = Schema["GroupAnswer"];

export interface Siblings extends Omit<GroupAnswer, "rollouts" | "columns"> {
  all: Sibling[];
}

function siblingsOf(answer: GroupAnswer): Siblings {
  const at = new Map(answer.columns.map((name, i) => [name, i]));
  const all = answer.rollouts.map(({ id, values }): Sibling => {
    const value = (name: string): unknown => values[at.get(name) ?? -1] ?? null;
    const number = (name: string) => {
      const found = value(name);
      return typeof found === "number" ? found : null;
    };
    const text = (name: string) => {
      const found = value(name);
      return typeof found === "string" || typeof found === "number" ? String(found) : null;
    };
    return {
      id,
      step: number("step"),
      reward: number("reward"),
      advantage: number("advantage"),
      index: number("sample_index"),
      version: number("version"),
      lag: number("lag"),
      mixed: value("mixed") === true || value("mixed") === 1,
      status: text("status"),
      reason: text("reason"),
      stopReason: text("stop_reason"),
      truncated: value("truncated") === true || value("truncated") === 1,
      turns: number("turns"),
      chars: number("response_chars"),
      tokens: number("tokens"),
      groupId: text("group_id"),
    };
  });
  return { ...answer, all };
}

/** The group of a rollout. */
export function useGroup(id: string | null, enabled = true) {
  return useAsk(
    ["group", id],
    async (view) => siblingsOf(await ask(api.GET("/api/view/{view}/rollouts/{id}/group", { params: { path: { view, id: id ?? "" } } }))),
    { enabled: enabled && id !== null },
  );
}

/** The rollouts of the same prompt at every step. */
export function usePrompt(id: string | null) {
  return useAsk(
    ["prompt", id],
    async (view) => siblingsOf(await ask(api.GET("/api/view/{view}/rollouts/{id}/prompt", { params: { path: { view, id: id ?? "" } } }))),
    { enabled: id !== null },
  );
}

/** Bodies are read for it, so that it stays a handful. */
const ENDINGS_MAX = 64;
const ENDING_CHARS = 240;

/** How the answers of a group end, by id: the server cuts them, so that no body crosses the network. */
export function useEndings(groupId: string | null) {
  return useAsk(
    ["endings", groupId],
    async (view) => {
      const sql = `SELECT id, substr(response, -${ENDING_CHARS}) FROM rollouts WHERE group_id = ${groupId ?? ""} ORDER BY sample_index`;
      const answer = await ask(api.POST("/api/view/{view}/sql", { params: { path: { view } }, body: { sql, limit: ENDINGS_MAX } }));
      return new Map((answer.rows as unknown[][]).map(([id, text]) => [String(id), typeof text === "string" ? text : ""]));
    },
    // Only what is surely a number gets into the query.
    { enabled: groupId !== null && /^-?\d+$/.test(groupId), live: false },
  );
}
