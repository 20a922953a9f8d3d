import { isGiven } from "@/parts/given";
import { count, counted, figure } from "@/parts/numbers";
import { Text } from "@/text/Text";
import { isTurn } from "./path";
import type { Turn, UnderWay } from "./news";
import { marksOf, STOPS } from "./words";
import css from "./Session.module.css";

/** Everything about the turn that is chosen, in words: what its node only has signs for as well. */
export function TurnFacts({ one }: { one: Turn | UnderWay }) {
  return (
    <section className={css["facts"]} aria-label="Turn" tabIndex={0}>
      <h2>{`Turn ${one.turn}`}</h2>
      <dl>{(isTurn(one) ? factsOf(one) : begunOf(one)).map(([name, value]) => value !== null && <Fact key={name} name={name} value={value} />)}</dl>
      <ul className={css["marks"]}>
        {marksOf(one).map(({ name, sign, words, isBad }) => (
          <li key={name} data-bad={isBad}>
            <span aria-hidden="true">{sign}</span> {words}
          </li>
        ))}
      </ul>
      {isTurn(one) &&
        one.malformed.map((text, i) => (
          <pre key={i} className={css["malformed"]} dir="auto">
            <Text text={text} />
          </pre>
        ))}
    </section>
  );
}

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

function begunOf(one: UnderWay): [string, string | null][] {
  return [
    ["Ended by", "under way"],
    ["Follows", !isGiven(one.follows) ? "nothing" : `turn ${one.follows}`],
  ];
}

function factsOf(one: Turn): [string, string | null][] {
  const { versions } = one;
  const like = isGiven(one.begins_like) && one.begins_like !== one.follows ? `turn ${one.begins_like}, for ${counted(one.shared_tokens, "token")}` : null;
  return [
    ["Ended by", STOPS[one.stop] ?? one.stop],
    ["Reward", !isGiven(one.reward) ? null : figure(one.reward)],
    ["Follows", !isGiven(one.follows) ? "nothing" : `turn ${one.follows}`],
    ["Begins like", like],
    ["Tokens", `${count(one.sampled_tokens)} after ${count(one.prompt_tokens)}`],
    ["Took", `${seconds(one.took_ms)}, the first token ${seconds(one.first_ms)}`],
    ["Weights", versions.length === 0 ? null : versions.map(([version, tokens]) => (versions.length === 1 ? String(version) : `${version} for ${count(tokens)}`)).join(", ")],
    ["Thoughts", one.keeps_thoughts ? "kept in the prompt" : null],
  ];
}

function seconds(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${figure(ms / 1000)} s`;
}
