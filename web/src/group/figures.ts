/** What the rewards of a group say together. */

import { counted, figure } from "@/parts/numbers";
import type { Sibling } from "./useGroup";

export function deviation(values: number[]): number | null {
  if (values.length === 0) return null;
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  return Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length);
}

export const rewardsOf = (all: Sibling[]): number[] => all.map(({ reward }) => reward).filter((reward) => reward !== null);

/** Why there is nothing to learn from a group, if there is not. */
export function deadReason(all: Sibling[], zeroVariance: boolean): string | null {
  if (all.length === 1) return null;
  if (zeroVariance) return `All ${counted(all.length, "reward")} are ${figure(all[0]?.reward)}: every advantage is zero, so there is no gradient.`;
  return null;
}

/**
 * Whom a rollout is best held against: the best sibling with another reward, or the worst if this is the best itself.
 * Where all rewards are equal, simply the next one.
 */
export function counterpart(all: Sibling[], id: string): string | null {
  const others = all.filter((sibling) => sibling.id !== id);
  const mine = all.find((sibling) => sibling.id === id)?.reward ?? null;
  const differing = others.filter(({ reward }) => reward !== null && reward !== mine);
  const high = differing.reduce<Sibling | null>((best, next) => (best === null || (next.reward ?? 0) > (best.reward ?? 0) ? next : best), null);
  if (!high) return others[0]?.id ?? null;
  if (mine === null || (high.reward ?? 0) > mine) return high.id;
  return differing.reduce((worst, next) => ((next.reward ?? 0) < (worst.reward ?? 0) ? next : worst), high).id;
}
