import { count, counted, figure } from "@/parts/numbers";
import type { Rollout } from "@/reader/useRollout";
import { useViewState } from "@/state/location";
import { nameOf } from "@/tokens/place";
import { mayHaveTokens, useTokens, type TokensAnswer } from "@/tokens/useTokens";
import { commonStart } from "./align";
import css from "./Diff.module.css";

/** What a token says and how likely it was: `" Left" (log-prob -0.31)`. */
export function tokenAt({ tokens, texts, prompt_len, logprobs }: TokensAnswer, at: number): string {
  const id = tokens[at];
  if (id === undefined) return "its end";
  const text = texts?.[at];
  const logprob = logprobs?.[at - prompt_len];
  const name = text === undefined ? String(id) : JSON.stringify(text);
  return logprob === undefined ? name : `${name} (log-prob ${figure(logprob)})`;
}

/** Where two that were sampled from the same prompt part: the one token that made the difference. */
export function TokenDivergence({ here, there }: { here: Rollout; there: Rollout }) {
  const [, set] = useViewState();
  const both = mayHaveTokens(here) && mayHaveTokens(there);
  const mine = useTokens(here.id, both).data;
  const theirs = useTokens(there.id, both).data;
  if (!both || !mine?.answer || !theirs?.answer || mine.id !== here.id || theirs.id !== there.id) return null;
  const at = commonStart(mine.answer.tokens, theirs.answer.tokens);
  const isEqual = at === mine.answer.tokens.length && at === theirs.answer.tokens.length;
  if (isEqual) return <p className={css["tokens"]}>All {counted(at, "token")} are the same.</p>;
  const prompt = mine.answer.prompt_len;
  const start = at < prompt ? `The prompts part at token ${count(at)}` : `Same prompt, same ${counted(at - prompt, "response token")}`;
  return (
    <p className={css["tokens"]}>
      {start}; then{" "}
      <button type="button" className={css["link"]} title="Show it among the tokens" onClick={() => set({ tab: "tokens", token: nameOf(here.id, Math.min(at, mine.answer.tokens.length - 1)) })}>
        {tokenAt(mine.answer, at)}
      </button>{" "}
      here,{" "}
      <button type="button" className={css["link"]} title="Show it among the tokens of the other" onClick={() => set({ tab: "tokens", rollout: there.id, other: here.id, token: nameOf(there.id, Math.min(at, theirs.answer.tokens.length - 1)) })}>
        {tokenAt(theirs.answer, at)}
      </button>{" "}
      there.
    </p>
  );
}
