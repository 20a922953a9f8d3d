import { memo } from "react";
import { ageColour } from "@/table/Cell";
import type { RewardRange } from "@/table/columns";
import { compact, figure, rewardColour, share } from "@/parts/numbers";
import { COLUMNS } from "./columns";
import type { GroupSummary } from "./useGroups";
import css from "./Groups.module.css";

interface Props {
  group: GroupSummary | undefined;
  index: number;
  range: RewardRange;
  isChosen: boolean;
  onOpen: (index: number) => void;
}

export const groupRowId = (index: number) => `group-row-${index}`;

export const GroupRow = memo(function GroupRow({ group, index, range, isChosen, onOpen }: Props) {
  return (
    <div
      role="row"
      id={groupRowId(index)}
      aria-rowindex={index + 2}
      aria-selected={isChosen}
      aria-busy={group === undefined}
      className={css["row"]}
      data-chosen={isChosen}
      data-group={group?.group_id}
      onClick={() => onOpen(index)}
    >
      {COLUMNS.map((column, at) => (
        <div key={column.name} role="gridcell" aria-colindex={at + 1} className={css["cell"]} data-number={column.isNumber}>
          {group ? <Value name={column.name} group={group} range={range} /> : <span className={css["waiting"]} />}
        </div>
      ))}
    </div>
  );
});

function Value({ name, group, range }: { name: string; group: GroupSummary; range: RewardRange }) {
  switch (name) {
    case "step":
      return figure(group.step);
    case "data_source":
      return <span title={group.data_source ?? ""}>{group.data_source ?? "–"}</span>;
    case "n":
      return figure(group.n);
    case "reward_mean":
      return <Strip group={group} range={range} />;
    case "reward_std":
      return group.zero_variance ? (
        <span className={css["dead"]} title={`All ${group.n} rewards are equal: there is nothing to learn from`}>
          no gradient
        </span>
      ) : (
        figure(group.reward_std)
      );
    case "passes":
      return (
        <span title={`${group.passes} of ${group.n} have a reward above 0`}>
          {group.passes}/{group.n}
        </span>
      );
    case "response_chars_mean":
      return typeof group.response_chars_mean === "number" ? compact(group.response_chars_mean) : "–";
    case "truncated":
      return group.truncated === 0 ? "" : figure(group.truncated);
    case "lag_mean":
      return typeof group.lag_mean === "number" ? (
        <span className={css["lag"]} title={`${group.lag_mean} steps behind, in the mean`}>
          <span className={css["square"]} style={{ background: ageColour(group.lag_mean) }} />
          {group.lag_mean.toFixed(1)}
        </span>
      ) : (
        "–"
      );
    default:
      return null;
  }
}

/** From the lowest to the highest reward on the scale of the whole view, with the mean marked. */
function Strip({ group, range }: { group: GroupSummary; range: RewardRange }) {
  const { reward_min: min, reward_mean: mean, reward_max: max } = group;
  if (typeof min !== "number" || typeof mean !== "number" || typeof max !== "number") return "–";
  const [low, at, high] = [min, mean, max].map((value) => share(value, range.low, range.high)) as [number, number, number];
  return (
    <span className={css["strip"]} title={`lowest ${figure(min)}, mean ${figure(mean)}, highest ${figure(max)}`}>
      <span className={css["track"]}>
        <span className={css["spread"]} style={{ left: `${low * 100}%`, right: `${(1 - high) * 100}%` }} />
        <span className={css["mean"]} style={{ left: `${at * 100}%`, background: rewardColour(at) }} />
      </span>
      {figure(mean)}
    </span>
  );
}
