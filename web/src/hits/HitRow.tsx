import { memo } from "react";
import { count, figure, rewardText, share } from "@/parts/numbers";
import { channelName } from "./conditions";
import { marked } from "./snippet";
import type { Hit } from "./useHits";
import css from "./Hits.module.css";

interface Props {
  hit: Hit;
  index: number;
  total: number;
  top: number;
  isChosen: boolean;
  onOpen: (hit: Hit) => void;
}

export const HitRow = memo(
  function HitRow({ hit, index, total, top, isChosen, onOpen }: Props) {
    const { before, hit: found, after } = marked(hit.snippet, hit.at);
    return (
      <div
        id={`hit-${index}`}
        className={css["row"]}
        role="option"
        aria-selected={isChosen}
        aria-posinset={index + 1}
        aria-setsize={total}
        style={{ transform: `translateY(${top}px)` }}
        onClick={() => onOpen(hit)}
      >
        <span className={css["step"]} title={`Step ${figure(hit.step)}`}>
          {figure(hit.step)}
        </span>
        <span className={css["reward"]} title="Reward" style={hit.reward === null ? undefined : { color: rewardText(share(hit.reward, 0, 1)) }}>
          {figure(hit.reward)}
        </span>
        <span className={css["channel"]} data-channel={hit.channel}>
          {hit.count === 0 ? "" : channelName(hit.channel)}
        </span>
        <span className={css["snippet"]}>
          {hit.count === 0 ? (
            <em>has none of what it must not have</em>
          ) : (
            <>
              <span className={css["before"]}>
                <bdi>{before}</bdi>
              </span>
              <mark>{found}</mark>
              <span className={css["after"]}>
                <bdi>{after}</bdi>
              </span>
            </>
          )}
        </span>
        <span className={css["count"]} title={hit.count === 1 ? "1 hit" : `${count(hit.count)} hits in this rollout`}>
          {hit.count > 1 && `×${count(hit.count)}`}
        </span>
      </div>
    );
  },
  // The function that opens is another one with every render, and does the same.
  (a, b) => a.hit === b.hit && a.index === b.index && a.total === b.total && a.top === b.top && a.isChosen === b.isChosen,
);
