import { useMemo } from "react";
import { useChosenSteps, useSteps } from "@/curves/Curves";
import { compact, count, figure, rewardColour, share } from "@/parts/numbers";
import { toggled, useViewState } from "@/state/location";
import { equals } from "@/state/url";
import { totals } from "./useFigures";
import css from "./Figures.module.css";

/** One line for each source; a click shows its rows. */
export function BySource() {
  const [{ clauses }, set] = useViewState();
  const steps = useSteps("data_source");
  const { chosen } = useChosenSteps();
  const rows = useMemo(() => totals((steps.data ?? []).filter((point) => !chosen || (point.step >= chosen[0] && point.step <= chosen[1]))), [steps.data, chosen]);
  const rewards = rows.map((row) => row.reward).filter((reward) => reward !== null);
  const [low, high] = [Math.min(0, ...rewards), Math.max(1, ...rewards)];
  const percent = (value: number | null) => (value === null ? "–" : `${(value * 100).toFixed(0)}%`);
  return (
    <section className={css["part"]} aria-label="By source">
      <header className={css["head"]}>
        <h3>By source</h3>
        <span className={css["quiet"]}>{`all ${count(rows.length)}`}</span>
      </header>
      <table className={css["table"]}>
        <thead>
          <tr>
            {["Source", "Rollouts", "Reward", "", "pass@k", "Dead", "Truncated", "Length", "Lag"].map((name, i) => (
              <th key={name === "" ? i : name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.series}>
              <th scope="row">
                <button type="button" className={css["link"]} onClick={() => set({ clauses: toggled(clauses, equals("data_source", row.series)) })}>
                  {row.series === "" ? "none" : row.series}
                </button>
              </th>
              <td>{count(row.n)}</td>
              <td>{figure(row.reward)}</td>
              <td className={css["bar"]}>
                {row.reward !== null && <i style={{ width: `${share(row.reward, low, high) * 100}%`, background: rewardColour(share(row.reward, low, high)) }} />}
              </td>
              <td>{percent(row.pass)}</td>
              <td>{percent(row.dead)}</td>
              <td>{percent(row.truncated)}</td>
              <td>{row.length === null ? "–" : compact(row.length)}</td>
              <td>{figure(row.lag)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
