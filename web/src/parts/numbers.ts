/** Numbers as people read them. */

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

/** `12,480` */
export const count = (n: number): string => whole.format(n);

/** `1.2M`, where room is dear. */
export const compact = (n: number): string => short.format(n);

/** `1 row`, `3 rows`. */
export const counted = (n: number, one: string, many = `${one}s`): string => `${count(n)} ${n === 1 ? one : many}`;

/** A figure with as many digits as say something: `0.853`, `12.4`, `1,204`. */
export function figure(n: number | null | undefined): string {
  if (n === null || n === undefined || Number.isNaN(n)) return "–";
  if (Number.isInteger(n)) return Math.abs(n) < 1e15 ? count(n) : String(n);
  const size = Math.abs(n);
  if (size >= 1000) return count(n);
  if (size >= 100) return n.toFixed(1);
  if (size >= 10) return n.toFixed(2);
  if (size >= 0.001) return n.toFixed(3);
  return n.toExponential(1);
}

/** `1.6 GB`; powers of ten, as disks are sold. */
export function bytes(n: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  const power = n < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(n) / 3));
  const value = n / 1000 ** power;
  return `${power === 0 || value >= 100 ? value.toFixed(0) : value.toFixed(1)} ${units[power] ?? "B"}`;
}

/** Where a value stands on the reward scale: 0 is the lowest, 1 the highest. */
export function share(value: number, low: number, high: number): number {
  return high > low ? Math.min(1, Math.max(0, (value - low) / (high - low))) : 0.5;
}

/** The same for a number in words, which has to be read and not only seen. */
export const rewardText = (at: number): string => `color-mix(in oklab, ${rewardColour(at)} 55%, var(--text))`;

/** The colour of a reward, on the scale from low through the middle to high. */
export function rewardColour(at: number): string {
  const from = at < 0.5 ? "var(--reward-low)" : "var(--reward-high)";
  const strength = Math.round(Math.abs(at - 0.5) * 200);
  return `color-mix(in oklab, ${from} ${strength}%, var(--reward-mid))`;
}
