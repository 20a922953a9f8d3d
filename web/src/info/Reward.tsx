import { RewardBar } from "@/group/RewardBar";
import { figure } from "@/parts/numbers";
import type { Rollout } from "@/reader/useRollout";
import { equals } from "@/state/url";
import { FilterTo } from "./Facts";
import css from "./Info.module.css";

/** Names that writers give to the right answer. */
const TRUTHS = ["ground_truth", "gts", "gt", "answer", "target", "label", "solution"];

function truthOf({ attributes, rest }: Rollout): [string, string] | null {
  for (const place of [attributes, rest] as Record<string, unknown>[]) {
    for (const name of TRUTHS) {
      const value = place[name];
      if (value !== undefined && value !== null) return [name, typeof value === "string" ? value : JSON.stringify(value, null, 1)];
    }
  }
  return null;
}

/** What it earned, part by part, against what was right. */
export function Reward({ rollout }: { rollout: Rollout }) {
  const summary = rollout.summary as Record<string, unknown>;
  const number = (value: unknown) => (typeof value === "number" ? value : null);
  const parts = Object.entries(rollout.extra as Record<string, unknown>)
    .filter(([name]) => name.startsWith("reward."))
    .map(([name, value]) => ({ name, value: number(value) }));
  const all = [{ name: "reward", value: number(summary["reward"]) }, ...parts];
  const values = all.map(({ value }) => value ?? 0);
  const low = Math.min(0, ...values);
  const high = Math.max(...values, low === 0 ? 1 : 0);
  const truth = truthOf(rollout);
  return (
    <section aria-label="Reward">
      <h2 className={css["title"]}>Reward</h2>
      <table className={css["reward"]}>
        <tbody>
          {all.map(({ name, value }) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td>
                <RewardBar reward={value} low={low} high={high} />
              </td>
              <td className={css["act"]}>
                <FilterTo clause={/^[\w.]+$/.test(name) ? equals(name, value) : null} />
              </td>
            </tr>
          ))}
          <tr>
            <th scope="row">advantage</th>
            <td>{figure(number(summary["advantage"]))}</td>
            <td />
          </tr>
        </tbody>
      </table>
      {truth !== null && (
        <p className={css["truth"]} tabIndex={0}>
          <span>{truth[0]}</span>
          <bdi>{truth[1]}</bdi>
        </p>
      )}
    </section>
  );
}
