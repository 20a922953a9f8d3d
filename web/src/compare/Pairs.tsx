import { figure, rewardColour, share } from "@/parts/numbers";
import { useViewState } from "@/state/location";
import { format, INITIAL } from "@/state/url";
import type { Pair, Side } from "./useCompare";
import css from "./Compare.module.css";

/** One prompt a line: its mean here and there, and the difference as a bar from the middle. */
export function Pairs({ pairs, against }: { pairs: Pair[]; against: string[] }) {
  const [, set] = useViewState();
  const widest = Math.max(...pairs.map((pair) => Math.abs(pair.delta ?? 0)), 1e-9);
  return (
    <div className={css["scroll"]}>
      <table className={css["pairs"]}>
        <thead>
          <tr>
            <th scope="col">Prompt</th>
            <th scope="col">Here</th>
            <th scope="col">There</th>
            <th scope="col" colSpan={2}>
              Difference
            </th>
          </tr>
        </thead>
        <tbody>
          {pairs.map((pair) => (
            <tr key={pair.prompt_hash}>
              <td className={css["prompt"]}>
                <button type="button" title={pair.prompt} onClick={() => set({ rollout: pair.here.best, tab: "group" })}>
                  {pair.prompt === "" ? pair.prompt_hash : pair.prompt}
                </button>
              </td>
              <td>
                <Mean side={pair.here} />
              </td>
              <td>
                <a href={`/${format({ ...INITIAL, places: against, rollout: pair.there.best })}`} target="_blank" rel="noreferrer" title="Open its best rollout there">
                  <Mean side={pair.there} />
                </a>
              </td>
              <Delta delta={pair.delta ?? null} widest={widest} />
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Delta({ delta, widest }: { delta: number | null; widest: number }) {
  const half = (Math.abs(delta ?? 0) / widest) * 50;
  return (
    <>
      <td className={css["delta"]}>{`${delta !== null && delta > 0 ? "+" : ""}${figure(delta)}`}</td>
      <td className={css["bar"]}>
        {delta !== null && <i style={{ width: `${half}%`, left: `${delta < 0 ? 50 - half : 50}%`, background: rewardColour(share(delta, -widest, widest)) }} />}
      </td>
    </>
  );
}

function Mean({ side }: { side: Side }) {
  return (
    <span>
      {figure(side.reward_mean)} <small>{`of ${side.n}`}</small>
    </span>
  );
}
