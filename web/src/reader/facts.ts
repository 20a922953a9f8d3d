/** What the head of a rollout says of it, in words. */

import { figure } from "@/parts/numbers";
import type { Rollout } from "./useRollout";

export interface Fact {
  name: string;
  text: string;
  /** The whole story, where the text is short. */
  more?: string | undefined;
  kind?: "plain" | "warn" | "danger";
}

/** The columns of a rollout, by what they should be. */
export function valuesOf(rollout: Rollout) {
  const summary = rollout.summary as Record<string, unknown>;
  return {
    number: (name: string) => (typeof summary[name] === "number" ? summary[name] : null),
    text: (name: string) => (typeof summary[name] === "string" && summary[name] !== "" ? summary[name] : null),
    flag: (name: string) => summary[name] === true || summary[name] === 1,
  };
}

export function rewardOf(rollout: Rollout): number | null {
  return valuesOf(rollout).number("reward");
}

/** The parts of a reward that is an object of numbers. */
export function rewardParts(rollout: Rollout): [string, number][] {
  return Object.entries(rollout.extra)
    .map(([name, value]): [string, unknown] => [name.replace(/^reward\./, ""), name.startsWith("reward.") ? value : null])
    .filter((part): part is [string, number] => typeof part[1] === "number");
}

/** `no_variance` as it is read. */
const words = (name: string) => name.replaceAll("_", " ");

/** What became of it: trained at a step, dropped and why. */
export function statusOf(rollout: Rollout): Fact | null {
  const { text, number } = valuesOf(rollout);
  const status = text("status");
  if (status === null) return null;
  const reason = text("reason");
  const trained = number("trained_step");
  const shown = reason !== null ? `${status}: ${words(reason)}` : trained !== null ? `${status} at step ${figure(trained)}` : status;
  const isBad = status === "dropped" || status === "rejected" || status === "failed";
  return { name: "status", text: shown, kind: isBad ? "warn" : "plain", more: "What became of it" };
}

/** The weights that it is from. */
export function versionOf(rollout: Rollout): Fact[] {
  const { number, flag } = valuesOf(rollout);
  const version = number("version");
  const lag = number("lag");
  const facts: Fact[] = [];
  if (version !== null) facts.push({ name: "version", text: `v${version}`, more: "Version of the weights that sampled its first token" });
  if (lag !== null) facts.push({ name: "lag", text: `lag ${lag}`, more: "Steps between its weights and the step that trained on it" });
  if (flag("mixed")) facts.push({ name: "mixed", text: "mixed versions", more: "Its tokens come from more than one version of the weights", kind: "warn" });
  return facts;
}

/** What else is worth a word: how it ended, and what is wrong with it. */
export function marksOf(rollout: Rollout): Fact[] {
  const { flag, text } = valuesOf(rollout);
  const stop = text("stop_reason");
  const facts: (Fact | null)[] = [
    flag("truncated") ? { name: "truncated", text: "truncated", more: "Generation ended at a limit", kind: "warn" } : stop === null ? null : { name: "stop", text: `stop: ${words(stop)}`, more: "Why generation ended" },
    flag("unclosed") ? { name: "unclosed", text: "unclosed think", more: "A block of reasoning is never closed", kind: "warn" } : null,
    flag("odd") ? { name: "odd", text: "odd values", more: "Something in it is not as the format says, such as NaN for a number", kind: "warn" } : null,
    flag("validate") ? { name: "validate", text: "validation", more: "Made for validation, not for training" } : null,
  ];
  return facts.filter((fact) => fact !== null);
}
