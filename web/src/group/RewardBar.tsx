import { figure, rewardColour, share } from "@/parts/numbers";
import css from "./Group.module.css";

/** A reward as a bar from zero, on the scale from low to high. */
export function RewardBar({ reward, low, high }: { reward: number | null; low: number; high: number }) {
  const zero = share(0, low, high) * 100;
  const end = reward === null ? zero : share(reward, low, high) * 100;
  const left = Math.min(zero, end);
  return (
    <span className={css["bar"]}>
      <span className={css["track"]} aria-hidden="true">
        {reward !== null && (
          <span className={css["fill"]} style={{ left: `${left}%`, width: `max(2px, ${Math.abs(end - zero)}%)`, background: rewardColour(share(reward, low, high)) }} />
        )}
      </span>
      <span className={css["number"]}>{figure(reward)}</span>
    </span>
  );
}
