/** What became of one prompt over the steps: when it was first solved, when that was lost, and when it came back. */

import { grouped } from "@/parts/grouped";
import type { Sibling } from "@/group/useGroup";

/** The rollouts of one prompt at one step. */
export interface AtStep {
  step: number;
  all: Sibling[];
  /** Rewards above zero. */
  passes: number;
  /** Rollouts that have a reward. */
  graded: number;
  mean: number | null;
  best: Sibling | null;
}

export function byStep(all: Sibling[]): AtStep[] {
  const steps = grouped(all, ({ step }) => step ?? 0);
  return [...steps.entries()]
    .sort(([a], [b]) => a - b)
    .map(([step, rollouts]) => {
      const graded = rollouts.filter(({ reward }) => reward !== null);
      const sum = graded.reduce((total, { reward }) => total + (reward ?? 0), 0);
      const best = graded.reduce<Sibling | null>((high, next) => (high === null || (next.reward ?? 0) > (high.reward ?? 0) ? next : high), null);
      return {
        step,
        all: rollouts,
        passes: graded.filter(({ reward }) => (reward ?? 0) > 0).length,
        graded: graded.length,
        mean: graded.length === 0 ? null : sum / graded.length,
        best,
      };
    });
}

/** One turn of the story, at a step that can be gone to. */
export interface Turn {
  what: "first" | "lost" | "back";
  step: number;
}

export function turnsOf(steps: Pick<AtStep, "step" | "passes" | "graded">[]): Turn[] {
  const turns: Turn[] = [];
  let isSolved = false;
  for (const { step, passes, graded } of steps) {
    // Without a reward nobody knows, which is neither a success nor a loss.
    if (graded === 0 || passes > 0 === isSolved) continue;
    isSolved = passes > 0;
    turns.push({ what: isSolved ? (turns.length === 0 ? "first" : "back") : "lost", step });
  }
  return turns;
}

/** A sentence in parts, so that its steps can be links. */
export type Part = string | { step: number };

/** More than this nobody reads; the steps are in the list below. */
const TURNS_MAX = 7;

export function storyOf(steps: Pick<AtStep, "step" | "passes" | "graded">[]): Part[] {
  const graded = steps.filter((step) => step.graded > 0);
  const last = graded.at(-1);
  if (!last) return ["None of its rollouts has a reward."];
  const turns = turnsOf(steps);
  const [first] = turns;
  if (!first) return [graded.length === 1 ? "Not solved at " : `Not solved at any of its ${graded.length} steps, the last is `, "step ", { step: last.step }, "."];
  if (turns.length === 1 && first.step === graded[0]?.step) {
    return graded.length === 1 ? ["Solved at step ", { step: first.step }, "."] : ["Solved at the first step, ", { step: first.step }, ", and at every one since."];
  }
  const shown = turns.slice(0, TURNS_MAX);
  const parts: Part[] = ["First solved at step ", { step: first.step }];
  shown.slice(1).forEach((turn, i) => parts.push(i % 2 === 0 ? "; lost at " : ", back at ", { step: turn.step }));
  if (turns.length > shown.length) parts.push(`; and ${turns.length - shown.length} more changes`);
  const isSolved = turns.at(-1)?.what !== "lost";
  parts.push(turns.length === 1 ? ", and at every one since." : isSolved ? "; solved now." : "; not solved since.");
  return parts;
}
