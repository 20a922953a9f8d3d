/** The conversation that ends with a turn. */

import { isGiven } from "@/parts/given";
import type { Session, Turn, UnderWay } from "./news";

export interface Path {
  /** From the first to the one that is shown. */
  turns: readonly (Turn | UnderWay)[];
  messages: readonly unknown[];
  /** The message that the last turn answers with. */
  answer: number;
  isGrowing: boolean;
}

export const isTurn = (one: Turn | UnderWay): one is Turn => "answer" in one;

export function allTurns(session: Session): (Turn | UnderWay)[] {
  return [...session.turns, ...session.under_way];
}

/** The turn that began last. */
export function newest(session: Session): number | null {
  return allTurns(session).reduce<number | null>((last, { turn }) => (last === null || turn > last ? turn : last), null);
}

/** Null where the session has no such turn. */
export function pathTo(session: Session, turn: number): Path | null {
  const byTurn = new Map(allTurns(session).map((one) => [one.turn, one]));
  const turns: (Turn | UnderWay)[] = [];
  // A turn follows one that began before it: there is no circle to go round in.
  for (let one = byTurn.get(turn); one; one = isGiven(one.follows) && one.follows < one.turn ? byTurn.get(one.follows) : undefined) turns.push(one);
  const last = turns[0];
  if (!last) return null;
  turns.reverse();
  // A prompt that was rendered anew has everything that was said before among its own messages.
  const from = Math.max(0, turns.findLastIndex((one) => isGiven(one.cut)));
  const messages = turns.slice(from).flatMap((one): unknown[] => [...one.messages, isTurn(one) ? one.answer : growing(one)]);
  return { turns, messages, answer: messages.length - 1, isGrowing: !isTurn(last) };
}

/** What was said until now, in the form that it will have. */
export function growing({ content, reasoning, calls }: UnderWay): object {
  const tool_calls = written(calls);
  return { role: "assistant", ...(reasoning !== "" && { reasoning_content: reasoning }), content, ...(tool_calls.length > 0 && { tool_calls }) };
}

/** Each call begins on a line of its own, with its name; the lines of arguments begin otherwise. */
function written(calls: string): object[] {
  const parts = calls.trimStart().split(/\n(?=[^\s"{}[\],]+ (?:\{|$))/);
  return parts.filter(Boolean).map((text) => {
    const [name = ""] = text.split(" ", 1);
    return { type: "function", function: { name, arguments: text.slice(name.length + 1) } };
  });
}
