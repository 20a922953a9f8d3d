import { RewardBar } from "@/group/RewardBar";
import type { Sibling } from "@/group/useGroup";
import { count, figure } from "@/parts/numbers";
import type { Rollout } from "@/reader/useRollout";
import css from "./Diff.module.css";

interface Props {
  here: Rollout;
  there: Rollout;
  siblings: Sibling[];
  onOther: (id: string) => void;
}

interface Facts {
  reward: number | null;
  length: number | null;
  unit: string;
  stop: string;
}

/** Both lengths in the same unit: in tokens only if both have them. */
function factsOf({ summary }: Rollout, byTokens: boolean): Facts {
  const values = summary as Record<string, unknown>;
  const number = (name: string) => (typeof values[name] === "number" ? values[name] : null);
  return {
    reward: number("reward"),
    length: number(byTokens ? "tokens" : "response_chars"),
    unit: byTokens ? "tokens" : "characters",
    stop: typeof values["stop_reason"] === "string" ? values["stop_reason"] : "–",
  };
}

const signed = (n: number) => (n > 0 ? `+${figure(n)}` : n < 0 ? `−${figure(-n)}` : "0");

const hasTokens = ({ summary }: Rollout) => typeof (summary as Record<string, unknown>)["tokens"] === "number";

function label(sibling: Sibling, i: number): string {
  const length = sibling.tokens === null ? `${figure(sibling.chars)} chars` : `${count(sibling.tokens)} tok`;
  return `#${sibling.index ?? i} · reward ${figure(sibling.reward)} · ${length}`;
}

/** Both rollouts in figures, side by side with the difference. */
export function DiffHead({ here, there, siblings, onOther }: Props) {
  const byTokens = hasTokens(here) && hasTokens(there);
  const [mine, theirs] = [factsOf(here, byTokens), factsOf(there, byTokens)];
  const low = Math.min(0, mine.reward ?? 0, theirs.reward ?? 0);
  const high = Math.max(mine.reward ?? 0, theirs.reward ?? 0, low === 0 ? 1 : 0);
  const others = siblings.filter(({ id }) => id !== here.id);
  const isStranger = !others.some(({ id }) => id === there.id);
  const index = siblings.find(({ id }) => id === here.id)?.index;
  return (
    <table className={css["head"]}>
      <thead>
        <tr>
          <td />
          <th scope="col">
            <span className={css["minus"]}>−</span> This one{index === null || index === undefined ? "" : `, #${index}`}
          </th>
          <th scope="col">
            <span className={css["plus"]}>+</span>{" "}
            <select aria-label="Compare with" value={there.id} onChange={(event) => onOther(event.target.value)}>
              {isStranger && <option value={there.id}>another, {there.id.slice(0, 8)}</option>}
              {others.map((sibling, i) => (
                <option key={sibling.id} value={sibling.id}>
                  {label(sibling, i)}
                </option>
              ))}
            </select>
          </th>
          <th scope="col">Difference</th>
        </tr>
      </thead>
      <tbody>
        <tr>
          <th scope="row">Reward</th>
          <td>
            <RewardBar reward={mine.reward} low={low} high={high} />
          </td>
          <td>
            <RewardBar reward={theirs.reward} low={low} high={high} />
          </td>
          <td className={css["delta"]} aria-label="Difference of the rewards">
            {mine.reward === null || theirs.reward === null ? "–" : signed(theirs.reward - mine.reward)}
          </td>
        </tr>
        <tr>
          <th scope="row">Length</th>
          <td>
            {figure(mine.length)} {mine.unit}
          </td>
          <td>
            {figure(theirs.length)} {theirs.unit}
          </td>
          <td>{mine.length === null || theirs.length === null ? "–" : signed(theirs.length - mine.length)}</td>
        </tr>
        <tr>
          <th scope="row">Stop</th>
          <td>{mine.stop}</td>
          <td>{theirs.stop}</td>
          <td>{mine.stop === theirs.stop ? "the same" : "different"}</td>
        </tr>
      </tbody>
    </table>
  );
}
