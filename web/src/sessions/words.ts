/** What is said of turns and sessions, in the words of people. */

import { isGiven } from "@/parts/given";
import { count, counted, figure } from "@/parts/numbers";
import { isTurn } from "./path";
import type { Turn, UnderWay } from "./news";

export const STOPS: Record<string, string> = {
  stop: "stop",
  length: "length",
  tool_calls: "calls",
  abort: "aborted",
};

/** What is not as it should be, or at least to be known. */
export function marksOf(one: Turn | UnderWay): { sign: string; name: string; words: string; isBad: boolean }[] {
  const marks = [];
  if (isGiven(one.cut)) marks.push({ sign: "✂", name: "cut", words: `cut: ${one.cut}`, isBad: false });
  if (!isTurn(one)) return marks;
  if (one.malformed.length > 0) marks.push({ sign: "!", name: "malformed", words: counted(one.malformed.length, "malformed call"), isBad: true });
  if (one.lacks_call) marks.push({ sign: "∅", name: "lacks a call", words: "a call was demanded, and none was made", isBad: true });
  if (one.is_unheard) marks.push({ sign: "⌁", name: "unheard", words: "unheard: the agent had gone before it ended", isBad: false });
  return marks;
}

/** All of a turn in a sentence, for the tooltip and for those who cannot see the tree. */
export function sentence(one: Turn | UnderWay): string {
  const follows = !isGiven(one.follows) ? "begins a conversation" : `follows ${one.follows}`;
  const how = isTurn(one)
    ? [`ended by ${STOPS[one.stop] ?? one.stop}`, counted(one.sampled_tokens, "token"), !isGiven(one.reward) ? null : `reward ${figure(one.reward)}`]
    : ["under way"];
  const like = !isGiven(one.follows) && isGiven(one.begins_like) ? `begins like ${one.begins_like}` : null;
  return [`Turn ${count(one.turn)}`, follows, like, ...how, ...marksOf(one).map(({ words }) => words)].filter(Boolean).join(", ");
}
