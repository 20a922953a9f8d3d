import { useMemo, useState } from "react";
import { useView } from "@/api/view";
import { Bars } from "@/charts/Bars";
import { Plot } from "@/charts/Plot";
import { useChosenSteps, useSteps } from "@/curves/Curves";
import { draw, METRICS } from "@/curves/metrics";
import { useHistogram } from "@/facets/useHistogram";
import { Choose } from "@/parts/Choose";
import { ErrorNotice, Notice } from "@/parts/Notice";
import { count, counted, figure, rewardColour, share } from "@/parts/numbers";
import { useViewState } from "@/state/location";
import { total, useDistinct } from "./useFigures";
import { BySource } from "./BySource";
import css from "./Figures.module.css";

const BINS = 40;

const SMALL = ["reward_mean", "pass_at_k", "response_chars_mean", "truncated", "dead_groups", "lag_mean"];

/** The filter in figures: every number opens the rows behind it. */
export function Figures() {
  return (
    <div className={css["figures"]}>
      <Cards />
      <Distribution />
      <BySource />
      <BySteps />
    </div>
  );
}

function Cards() {
  const steps = useSteps(null);
  const { chosen } = useChosenSteps();
  const distinct = useDistinct();
  const { filter } = useView();
  const reward = useHistogram("reward", filter, BINS);
  const sum = useMemo(() => {
    const inside = (steps.data ?? []).filter((point) => !chosen || (point.step >= chosen[0] && point.step <= chosen[1]));
    return total("", inside);
  }, [steps.data, chosen]);
  const percent = (value: number | null) => (value === null ? "–" : `${(value * 100).toFixed(1)}%`);
  const cards: [string, string, string][] = [
    ["Rollouts", count(sum.n), `of ${count(distinct.data?.prompts ?? 0)} prompts`],
    ["Reward", figure(sum.reward), reward.data ? `mean; ${count(reward.data.nulls)} have none` : "mean"],
    ["pass@k", percent(sum.pass), "of groups"],
    ["Dead groups", percent(sum.dead), "no gradient"],
    ["Truncated", percent(sum.truncated), "ended at a limit"],
    ["Staleness", figure(sum.lag), "steps, mean"],
  ];
  return (
    <dl className={css["cards"]}>
      {cards.map(([name, value, more]) => (
        <div key={name} className={css["card"]}>
          <dt>{name}</dt>
          <dd className={css["value"]}>{value}</dd>
          <dd className={css["more"]}>{more}</dd>
        </div>
      ))}
    </dl>
  );
}

function Distribution() {
  const { answer, filter } = useView();
  const [field, setField] = useState("reward");
  const [{ clauses }, set] = useViewState();
  const histogram = useHistogram(field, filter, BINS);
  const numeric = answer.columns.filter((column) => column.kind === "integer" || column.kind === "real").map((column) => column.name);
  const fields = Object.fromEntries([...numeric, ...answer.extras].filter((name) => !["row", "prompt_hash", "group_id", "line"].includes(name)).map((name) => [name, name]));
  const { data } = histogram;
  const low = data?.min ?? 0;
  const high = data?.max ?? 0;
  const choose = (i: number) => {
    const bin = data?.bins[i];
    if (!data || !bin) return;
    const last = i === data.bins.length - 1;
    set({ clauses: [...clauses, bin.from === bin.to ? `${field} == ${bin.from}` : `${field} >= ${bin.from} AND ${field} ${last ? "<=" : "<"} ${bin.to}`], list: "rows" });
  };
  return (
    <section className={css["part"]} aria-label="Distribution">
      <header className={css["head"]}>
        <h3>Distribution of</h3>
        <Choose label="Field of the distribution" options={fields} value={field} onChoose={setField} />
        {data && <span className={css["quiet"]}>{`${count(data.n)} values, mean ${figure(data.mean)}${data.nulls > 0 ? `; none in ${counted(data.nulls, "row")}` : ""}`}</span>}
      </header>
      {histogram.error && !data ? (
        <ErrorNotice error={histogram.error} title="This cannot be counted" />
      ) : data && data.bins.length === 0 ? (
        <Notice title={`No row has ${field}`} />
      ) : (
        <Bars
          label={`Distribution of ${field}`}
          bars={(data?.bins ?? []).map((bin) => ({
            label: `${figure(bin.from)} to ${figure(bin.to)}`,
            count: bin.count,
            ...(field === "reward" ? { colour: rewardColour(share((bin.from + bin.to) / 2, low, high)) } : {}),
          }))}
          ends={[figure(low), figure(high)]}
          onChoose={choose}
        />
      )}
    </section>
  );
}

function BySteps() {
  const [{ series }] = useViewState();
  const steps = useSteps(series);
  const { chosen, choose } = useChosenSteps();
  const points = steps.data;
  return (
    <section className={css["part"]} aria-label="By step">
      <header className={css["head"]}>
        <h3>By step</h3>
      </header>
      <div className={css["plots"]}>
        {SMALL.map((name) => (
          <Small key={name} name={name} points={points ?? []} chosen={chosen} onChoose={(from, to) => choose([from, to])} />
        ))}
      </div>
    </section>
  );
}

interface SmallProps {
  name: string;
  points: Parameters<typeof draw>[0];
  chosen: [number, number] | null;
  onChoose: (from: number, to: number) => void;
}

function Small({ name, points, chosen, onChoose }: SmallProps) {
  const drawn = useMemo(() => draw(points, name), [points, name]);
  const shown = METRICS[name];
  const empty = drawn.lines.every((line) => line.values.every((value) => value === null));
  if (!shown) return null;
  return (
    <figure>
      <figcaption title={shown.about}>{shown.label}</figcaption>
      {empty ? (
        <p className={css["none"]}>no values</p>
      ) : (
        <Plot label={shown.label} xs={drawn.xs} lines={drawn.lines} height={110} format={shown.format} chosen={chosen} onChoose={onChoose} small />
      )}
    </figure>
  );
}
