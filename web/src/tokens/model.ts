/** The tokens of one rollout as the view shows them: what each says, and what it is worth. */

import type { TokensAnswer } from "./useTokens";
import { visible } from "./visible";

export const HEATS = ["logprob", "entropy", "advantage", "version", "none"] as const;
export type Heat = (typeof HEATS)[number];

/** Everything about one token. */
export interface Token {
  at: number;
  id: number;
  text: string | null;
  isPrompt: boolean;
  isTrained: boolean;
  logprob: number | null;
  entropy: number | null;
  advantage: number | null;
  version: number | null;
}

export interface Model {
  length: number;
  promptLen: number;
  trained: number;
  /** Which ways to colour there are data for. */
  has: Record<Heat, boolean>;
  hasTexts: boolean;
  isExact: boolean;
  /** What of the row could not be used, and why. */
  problems: string[];
  /** The greatest advantage, either way. */
  advantageMax: number;
  /** The newest first. */
  versions: number[];
  /** Sampled tokens, from the least likely on; so many as anybody would step through. */
  worst: number[];
  token: (at: number) => Token;
  /** As it stands on the screen. */
  shown: (at: number) => string;
}

const WORST_MAX = 200;

/** Versions below 0 say that nobody knows. */
const known = (version: number | undefined) => (version === undefined || version < 0 ? null : version);

export function modelOf(answer: TokensAnswer): Model {
  const { tokens, prompt_len: promptLen, mask } = answer;
  const texts = answer.texts ?? null;
  const logprobs: (number | null)[] | null = answer.logprobs ?? null;
  const entropies = answer.entropies ?? null;
  const advantages = answer.advantages ?? null;
  const versions = answer.versions ?? null;
  let advantageMax = 0;
  for (const advantage of advantages ?? []) advantageMax = Math.max(advantageMax, Math.abs(advantage ?? 0));
  const token = (at: number): Token => {
    const i = at - promptLen;
    return {
      at,
      id: tokens[at] ?? 0,
      text: texts?.[at] ?? null,
      isPrompt: i < 0,
      isTrained: mask[i] === true,
      logprob: logprobs?.[i] ?? null,
      entropy: entropies?.[i] ?? null,
      advantage: advantages?.[i] ?? null,
      version: known(versions?.[i]),
    };
  };
  return {
    length: tokens.length,
    promptLen,
    trained: mask.reduce((n, on) => n + Number(on), 0),
    has: {
      logprob: logprobs !== null,
      entropy: entropies !== null,
      advantage: advantages !== null,
      version: versions !== null,
      none: true,
    },
    hasTexts: texts !== null,
    isExact: answer.exact,
    problems: answer.problems,
    advantageMax,
    versions: [...new Set(versions ?? [])].filter((version) => version >= 0).sort((a, b) => b - a),
    worst: worstOf(logprobs ?? [], mask).map((i) => i + promptLen),
    token,
    shown: (at) => (texts === null ? String(tokens[at] ?? 0) : visible(texts[at] ?? "")),
  };
}

/** Places of the lowest log-probs among what was sampled, the lowest first. */
export function worstOf(logprobs: (number | null)[], mask: boolean[], most = WORST_MAX): number[] {
  const places: number[] = [];
  logprobs.forEach((value, i) => {
    if (value !== null && mask[i] === true) places.push(i);
  });
  return places.sort((a, b) => (logprobs[a] ?? 0) - (logprobs[b] ?? 0) || a - b).slice(0, most);
}

/** The next place to go from `at` by rank: the worst of all if `at` is none of them. */
export function nextWorst(worst: number[], at: number | null, by: 1 | -1): number | null {
  if (worst.length === 0) return null;
  const rank = at === null ? -1 : worst.indexOf(at);
  const next = rank < 0 ? (by === 1 ? 0 : worst.length - 1) : (rank + by + worst.length) % worst.length;
  return worst[next] ?? null;
}
