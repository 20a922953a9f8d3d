import { count, figure } from "@/parts/numbers";
import type { Model, Token } from "./model";
import css from "./Tokens.module.css";

function percent(logprob: number | null): string {
  if (logprob === null) return "–";
  const share = Math.exp(logprob) * 100;
  return share === 0 || share >= 0.01 ? `${share.toFixed(2)}%` : `${share.toExponential(1)}%`;
}

function factsOf(model: Model, token: Token): [string, string][] {
  const rank = model.worst.indexOf(token.at);
  const facts: [string, string][] = [
    ["Position", token.isPrompt ? `${count(token.at)} of the prompt` : `${count(token.at)}, ${count(token.at - model.promptLen)} of the response`],
    ["Id", String(token.id)],
  ];
  if (!token.isPrompt) {
    facts.push(["Log-prob", figure(token.logprob)], ["Probability", percent(token.logprob)]);
    if (model.has.entropy) facts.push(["Entropy", figure(token.entropy)]);
    if (model.has.advantage) facts.push(["Advantage", figure(token.advantage)]);
    facts.push(["Version", token.version === null ? "–" : String(token.version)]);
    facts.push(["Trained", token.isTrained ? "yes" : "no, masked"]);
  }
  if (rank >= 0) facts.push(["Least likely", `no. ${count(rank + 1)}`]);
  return facts;
}

/** All about the token under the pointer, or the chosen one; its place is there always, so that nothing jumps. */
export function Details({ model, at }: { model: Model; at: number | null }) {
  if (at === null) return <p className={css["details"]}>Point at a token, or press w for the least likely one.</p>;
  const token = model.token(at);
  return (
    <dl className={css["details"]} aria-label="This token">
      <div>
        <dt>Text</dt>
        <dd>
          <code>{token.text === null ? "not known" : JSON.stringify(token.text)}</code>
        </dd>
      </div>
      {factsOf(model, token).map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
