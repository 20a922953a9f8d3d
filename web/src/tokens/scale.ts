/** Which colour a token has, and what the legend says of it. Steps, not a gradient: a legend can name them all. */

import { figure } from "@/parts/numbers";
import type { Heat, Model, Token } from "./model";

export interface Step {
  /** Names a class of the style sheet. */
  colour: string;
  label: string;
}

/** A token as likely as not is still dull; one in a hundred is what the eye should find. */
const PROBABILITIES = [0.9, 0.5, 0.1, 0.01];
/** In nats: ln 2 is a coin. */
const ENTROPIES = [0.1, 0.5, 1, 2];
const VERSIONS_MAX = 5;

/** The first bound that a falling value still reaches; after the last comes one more step. */
function falling(bounds: number[], value: number): number {
  const found = bounds.findIndex((bound) => value >= bound);
  return found < 0 ? bounds.length : found;
}

export const logprobStep = (logprob: number): number => falling(PROBABILITIES, Math.exp(logprob));
export const entropyStep = (entropy: number): number => ENTROPIES.length - falling([...ENTROPIES].reverse(), entropy);

/** From -2 to 2, against the greatest of this rollout. */
export function advantageStep(advantage: number, most: number): number {
  if (most === 0 || advantage === 0) return 0;
  return Math.sign(advantage) * (Math.abs(advantage) > most / 2 ? 2 : 1);
}

export function colourOf(model: Model, heat: Heat, token: Token): string | null {
  if (token.isPrompt) return null;
  if (heat === "logprob" && token.logprob !== null) return `heat${logprobStep(token.logprob)}`;
  if (heat === "entropy" && token.entropy !== null) return `heat${entropyStep(token.entropy)}`;
  if (heat === "advantage" && token.advantage !== null) return `reward${advantageStep(token.advantage, model.advantageMax) + 2}`;
  if (heat === "version" && token.version !== null) return `version${Math.min(model.versions.indexOf(token.version), VERSIONS_MAX - 1)}`;
  return null;
}

export function legendOf(model: Model, heat: Heat): Step[] {
  switch (heat) {
    case "logprob":
      return [...PROBABILITIES.map((p) => `≥ ${p}`), `< ${PROBABILITIES.at(-1) ?? 0}`].map((label, i) => ({ colour: `heat${i}`, label }));
    case "entropy":
      return [`< ${ENTROPIES[0] ?? 0}`, ...ENTROPIES.map((bound) => `≥ ${bound}`)].map((label, i) => ({ colour: `heat${i}`, label }));
    case "advantage": {
      const most = model.advantageMax;
      const labels = [`≥ −${figure(most)}`, `≥ −${figure(most / 2)}`, "0", `≤ ${figure(most / 2)}`, `≤ ${figure(most)}`];
      return labels.map((label, i) => ({ colour: `reward${i}`, label }));
    }
    case "version":
      return model.versions.slice(0, VERSIONS_MAX).map((version, i) => {
        const isRest = i === VERSIONS_MAX - 1 && model.versions.length > VERSIONS_MAX;
        return { colour: `version${i}`, label: isRest ? `≤ ${version}` : String(version) };
      });
    case "none":
      return [];
  }
}
