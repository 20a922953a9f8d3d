/** A session as it goes on: the whole of it, and what each piece of news makes of that. */

import type { Schema } from "@/api/client";
import { isGiven } from "@/parts/given";

export type Turn = Schema["TurnView"];
export type UnderWay = Schema["UnderWay"];
export type Session = Schema["SessionView"];
export type News = Schema["News"];

/**
 * News that are in the whole already change nothing: a stream begins with the whole, and what happened while that was
 * put together comes after it once more.
 */
export function heard(session: Session, news: News): Session {
  switch (news.type) {
    case "began":
      if (find(session.turns, news.turn) || find(session.under_way, news.turn)) return session;
      return running({ ...session, under_way: [...session.under_way, news] });
    case "said":
      return { ...session, under_way: session.under_way.map((one) => (one.turn === news.turn ? more(one, news) : one)) };
    case "ended": {
      if (find(session.turns, news.turn)) return session;
      const turns = [...session.turns.map((turn) => (turn.turn === news.follows && !isGiven(news.cut) ? { ...turn, is_leaf: false } : turn)), news];
      return without({ ...session, turns, sampled_tokens: session.sampled_tokens + news.sampled_tokens }, news.turn);
    }
    case "failed":
      return without({ ...session, failures: session.failures + 1, last_error: news.message }, news.turn);
    case "rewarded":
      return { ...session, turns: session.turns.map((turn) => (turn.turn === news.turn ? { ...turn, reward: news.reward } : turn)) };
    case "session": {
      // Its turns are only counted there, and those under way are known here.
      const { turns, running: underWay } = session;
      return { ...session, ...news, turns, running: underWay };
    }
  }
}

const find = (turns: readonly { turn: number }[], turn: number) => turns.find((one) => one.turn === turn);

function more(one: UnderWay, said: Schema["Said"]): UnderWay {
  if (said.times <= one.times) return one;
  return { ...one, reasoning: one.reasoning + said.reasoning, content: one.content + said.content, calls: one.calls + said.calls, times: said.times };
}

function without(session: Session, turn: number): Session {
  return running({ ...session, under_way: session.under_way.filter((one) => one.turn !== turn) });
}

function running(session: Session): Session {
  return { ...session, running: session.under_way.length };
}
