import { useMemo, useState } from "react";
import { api, ask } from "@/api/client";
import { useAsk, useLastGood, useView } from "@/api/view";
import { Plot } from "@/charts/Plot";
import { Button } from "@/parts/Button";
import { count, counted, figure } from "@/parts/numbers";
import { useViewState } from "@/state/location";
import { filterOf } from "@/state/url";
import { draw, metric, METRICS, stepsClause, stepsOf, type StepPoint } from "./metrics";
import { Choose } from "@/parts/Choose";
import css from "./Curves.module.css";

/** The steps of all rows that are let through, but for the choice of steps itself: that one is made here. */
export function useSteps(series: string | null) {
  const [{ q, clauses }] = useViewState();
  const filter = useLastGood(filterOf({ q, clauses: clauses.filter((clause) => stepsOf(clause) === null) }));
  return useAsk(
    ["steps", filter, series],
    (view) => ask(api.GET("/api/view/{view}/steps", { params: { path: { view }, query: { filter, ...(series === null ? {} : { series }) } } })),
    { isAside: true },
  );
}

export function useChosenSteps() {
  const [{ clauses }, set] = useViewState();
  const clause = clauses.find((some) => stepsOf(some) !== null);
  const chosen = useMemo(() => (clause === undefined ? null : stepsOf(clause)), [clause]);
  const choose = (steps: [number, number] | null) => {
    const others = clauses.filter((some) => stepsOf(some) === null);
    const same = steps && chosen && steps[0] === chosen[0] && steps[1] === chosen[1];
    set({ clauses: steps && !same ? [...others, stepsClause(...steps)] : others });
  };
  return { chosen, choose };
}

const SERIES = { "": "One line", data_source: "By source", experiment_name: "By experiment", status: "By status", source_file: "By file" };

/** The curve of the filter: is it learning? A click or a brush shows exactly those rows. */
export function Curves() {
  const [{ curve, series }, set] = useViewState();
  const { answer } = useView();
  const steps = useSteps(series);
  const { chosen, choose } = useChosenSteps();
  const [cursor, setCursor] = useState<number | null>(null);
  const points = steps.data;
  const drawn = useMemo(() => draw(points ?? [], curve), [points, curve]);
  const shown = metric(curve);
  const labels = Object.fromEntries(Object.entries(METRICS).map(([name, some]) => [name, some.label]));
  return (
    <section className={css["curves"]} aria-label="Curve over the steps">
      <header className={css["head"]}>
        <Choose label="Curve" hotkey="m" options={labels} value={curve} onChoose={(next) => set({ curve: next }, "replace")} />
        <Choose label="Lines" hotkey="Shift+M" options={SERIES} value={series ?? ""} onChoose={(next) => set({ series: next || null }, "replace")} />
        <Legend points={points ?? []} step={cursor === null ? null : (drawn.xs[cursor] ?? null)} chosen={chosen} drawn={drawn} about={shown.about} format={shown.format} cursor={cursor} />
        {chosen && (
          <Button label="Show all steps" hotkey="s" keyGroup="Steps" onClick={() => choose(null)}>
            {chosen[0] === chosen[1] ? `step ${chosen[0]}` : `steps ${chosen[0]}–${chosen[1]}`} ✕
          </Button>
        )}
      </header>
      {drawn.xs.length > 0 ? (
        <Plot
          label={`${shown.label} over ${counted(drawn.xs.length, "step")}`}
          xs={drawn.xs}
          lines={drawn.lines}
          height={132}
          format={shown.format}
          chosen={chosen}
          onChoose={(from, to) => choose([from, to])}
          onCursor={setCursor}
        />
      ) : (
        <p className={css["empty"]}>{steps.isPending || !answer.indexing.done ? "Reading the steps…" : "No rows, and so no curve."}</p>
      )}
    </section>
  );
}

interface LegendProps {
  points: StepPoint[];
  step: number | null;
  chosen: [number, number] | null;
  drawn: ReturnType<typeof draw>;
  about: string;
  format: (value: number) => string;
  cursor: number | null;
}

function Legend({ points, step, chosen, drawn, about, format, cursor }: LegendProps) {
  const inside = step !== null ? points.filter((point) => point.step === step) : chosen ? points.filter((point) => point.step >= chosen[0] && point.step <= chosen[1]) : points;
  const n = inside.reduce((sum, point) => sum + point.n, 0);
  const prompts = step === null ? null : inside.reduce((sum, point) => sum + point.n_prompts, 0);
  return (
    <p className={css["legend"]} title={about}>
      {drawn.lines.length > 1 || cursor !== null
        ? drawn.lines.map((line) => (
            <span key={line.label} className={css["line"]}>
              <i style={{ background: `var(${line.colour})` }} />
              {line.label} {cursor !== null && <b>{valueAt(line.values, cursor, format)}</b>}
            </span>
          ))
        : null}
      <span className={css["n"]}>
        {step !== null && `step ${step}: `}
        {counted(n, "rollout")}
        {prompts !== null && `, ${counted(prompts, "prompt")}`}
        {drawn.seriesTotal > drawn.lines.length && `; ${drawn.lines.length} of ${count(drawn.seriesTotal)} lines are drawn, those with the most`}
      </span>
    </p>
  );
}

function valueAt(values: (number | null)[], index: number, format: (value: number) => string): string {
  const value = values[index];
  return value === null || value === undefined ? figure(null) : format(value);
}
