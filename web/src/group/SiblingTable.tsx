import { memo } from "react";
import { count, figure } from "@/parts/numbers";
import { RewardBar } from "./RewardBar";
import { rewardsOf } from "./figures";
import { useEndings, type Sibling } from "./useGroup";
import css from "./Group.module.css";

interface Props {
  all: Sibling[];
  current: string | null;
  marked: string[];
  onMark: (id: string) => void;
  onOpen: (id: string) => void;
}

/** The rollouts of a group below each other: what they earned, how long they are, and how they end. */
export function SiblingTable({ all, current, marked, onMark, onOpen }: Props) {
  const endings = useEndings(all[0]?.groupId ?? null);
  const rewards = rewardsOf(all);
  const low = Math.min(0, ...rewards);
  const high = Math.max(...rewards, low + Number.EPSILON);
  return (
    <div className={css["scroll"]}>
      <table className={css["table"]}>
        <thead>
          <tr>
            <th scope="col">
              <span className="visually-hidden">Marked for the diff</span>
            </th>
            <th scope="col">#</th>
            <th scope="col" className={css["wide"]}>
              Reward
            </th>
            <th scope="col" className={css["number"]}>Adv.</th>
            <th scope="col" className={css["number"]}>Length</th>
            <th scope="col" className={css["number"]}>Turns</th>
            <th scope="col">Stop</th>
            <th scope="col">Status</th>
            <th scope="col">Version</th>
          </tr>
        </thead>
        {all.map((sibling, i) => (
          <Row
            key={sibling.id}
            sibling={sibling}
            name={sibling.index ?? i}
            scale={`${low} ${high}`}
            isCurrent={sibling.id === current}
            isMarked={marked.includes(sibling.id)}
            ending={endings.data?.get(sibling.id)}
            onMark={onMark}
            onOpen={onOpen}
          />
        ))}
      </table>
    </div>
  );
}

interface RowProps {
  sibling: Sibling;
  name: number;
  /** The lowest and the highest reward, as one value so that rows stay as they are. */
  scale: string;
  isCurrent: boolean;
  isMarked: boolean;
  ending: string | undefined;
  onMark: (id: string) => void;
  onOpen: (id: string) => void;
}

function versionOf({ version, lag, mixed }: Sibling): string {
  if (version === null) return mixed ? "mixed" : "–";
  return `${version}${mixed ? "+" : ""}${lag === null || lag === 0 ? "" : `, lag ${lag}`}`;
}

const Row = memo(function Row({ sibling, name, scale, isCurrent, isMarked, ending, onMark, onOpen }: RowProps) {
  const [low = 0, high = 1] = scale.split(" ").map(Number);
  const { id, reward, status, reason, stopReason } = sibling;
  return (
    <tbody className={css["row"]} aria-current={isCurrent} onClick={() => onOpen(id)}>
      <tr>
        <td>
          <input type="checkbox" aria-label={`Mark rollout ${name} for the diff`} checked={isMarked} onClick={(event) => event.stopPropagation()} onChange={() => onMark(id)} />
        </td>
        <td>
          <button type="button" className={css["open"]} aria-label={`Open rollout ${name}, reward ${figure(reward)}`}>
            {name}
          </button>
        </td>
        <td>
          <RewardBar reward={reward} low={low} high={high} />
        </td>
        <td className={css["number"]}>{figure(sibling.advantage)}</td>
        <td className={css["number"]} title={sibling.tokens === null ? "Characters of all answers" : `${count(sibling.chars ?? 0)} characters`}>
          {sibling.tokens === null ? figure(sibling.chars) : `${count(sibling.tokens)} tok`}
        </td>
        <td className={css["number"]}>{figure(sibling.turns)}</td>
        <td data-warn={sibling.truncated}>{stopReason ?? "–"}</td>
        <td title={reason ?? undefined}>{reason === null ? (status ?? "–") : `${status ?? ""}: ${reason}`}</td>
        <td title={sibling.mixed ? "Its tokens come from more than one version" : undefined}>{versionOf(sibling)}</td>
      </tr>
      {ending !== undefined && (
        <tr className={css["ending"]}>
          <td colSpan={2} />
          <td colSpan={7}>
            <bdi title="How the answer ends">{ending.trim() === "" ? "no answer" : `… ${ending.replace(/\s+/g, " ").trim().slice(-140)}`}</bdi>
          </td>
        </tr>
      )}
    </tbody>
  );
});
