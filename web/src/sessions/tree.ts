/**
 * Where the turns of a session stand: a row for each answer since the beginning, a column for each branch.
 *
 * The first turn that follows another stands under it, so that a conversation that simply goes on is a line. A turn
 * whose prompt was written anew follows none; it stands beside the turn that it begins like, from where it left.
 */

import { isGiven } from "@/parts/given";
import { grouped } from "@/parts/grouped";

export interface Branching {
  turn: number;
  follows?: number | null;
  cut?: string | null;
  begins_like?: number | null;
}

export interface Placed {
  turn: number;
  column: number;
  row: number;
}

export interface Edge {
  from: Placed;
  to: Placed;
  /** `goes_on` in the tokens; `cut` where the prompt was rendered anew; `like` where only the beginning is shared. */
  kind: "goes_on" | "cut" | "like";
}

export interface TreeLayout {
  /** By turn, in the order in which they began. */
  places: ReadonlyMap<number, Placed>;
  edges: readonly Edge[];
  columns: number;
  rows: number;
}

export function layout(turns: readonly Branching[]): TreeLayout {
  const sorted = [...turns].sort((a, b) => a.turn - b.turn);
  const known = new Set(sorted.map(({ turn }) => turn));
  // A turn follows one that was over before it began; anything else would be a circle.
  const before = (turn: number, other: number | null | undefined) => (isGiven(other) && other < turn && known.has(other) ? other : null);
  const parent = new Map(sorted.map((one) => [one.turn, before(one.turn, one.follows)]));
  const beside = new Map(sorted.map((one) => [one.turn, parent.get(one.turn) === null ? before(one.turn, one.begins_like) : null]));
  const followers = grouped(sorted, ({ turn }) => parent.get(turn) ?? null);
  const neighbours = grouped(sorted, ({ turn }) => beside.get(turn) ?? null);

  const found = new Map<number, Placed>();
  let columns = 0;
  let rows = 0;
  const roots = sorted.filter(({ turn }) => parent.get(turn) === null && beside.get(turn) === null);
  // A list of what is still to be placed, not a recursion: a conversation may have more turns than a stack has room.
  const waiting: { turn: number; row: number; column: number | null }[] = roots.map(({ turn }) => ({ turn, row: 0, column: null })).reverse();
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const { turn, row } = next;
    const column = next.column ?? columns++;
    found.set(turn, { turn, row, column });
    rows = Math.max(rows, row + 1);
    const under = (followers.get(turn) ?? []).map((one, i) => ({ turn: one.turn, row: row + 1, column: i === 0 ? column : null }));
    const aside = (neighbours.get(turn) ?? []).map((one) => ({ turn: one.turn, row, column: null }));
    waiting.push(...[...under, ...aside].reverse());
  }

  const edges = sorted.flatMap((one): Edge[] => {
    const follows = parent.get(one.turn) ?? null;
    const from = found.get(follows ?? beside.get(one.turn) ?? -1);
    const to = found.get(one.turn);
    if (!from || !to) return [];
    return [{ from, to, kind: follows === null ? "like" : !isGiven(one.cut) ? "goes_on" : "cut" }];
  });
  const places = new Map(sorted.flatMap(({ turn }) => (found.has(turn) ? [[turn, found.get(turn) as Placed] as const] : [])));
  return { places, edges, columns, rows };
}

export type Way = "up" | "down" | "left" | "right";

/** The turn that an arrow leads to: along the edges up and down, and to whatever is nearest beside. */
export function neighbour({ places, edges }: TreeLayout, turn: number, way: Way): number | null {
  const here = places.get(turn);
  if (!here) return null;
  const within = (kinds: boolean) => edges.filter((edge) => (edge.kind !== "like") === kinds);
  if (way === "up") return within(true).find((edge) => edge.to.turn === turn)?.from.turn ?? null;
  if (way === "down") return within(true).find((edge) => edge.from.turn === turn)?.to.turn ?? null;
  const sign = way === "left" ? -1 : 1;
  let best: Placed | null = null;
  for (const place of places.values()) {
    const away = (place.column - here.column) * sign;
    if (place.row === here.row && away > 0 && (best === null || away < (best.column - here.column) * sign)) best = place;
  }
  return best?.turn ?? null;
}
