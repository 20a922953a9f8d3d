import { keepPreviousData, useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, ask, type Schema } from "@/api/client";
import { useView } from "@/api/view";
import { Button } from "@/parts/Button";
import { useViewState } from "@/state/location";
import { bodyOf, keepMetrics, keptMetrics, NEW_METRIC, type OwnMetric, type Wanted } from "./wanted";
import { Estimate } from "./Estimate";
import { OwnMetricRow } from "./OwnMetricRow";
import css from "./Grading.module.css";

/** What to grade, by what, and what that takes. */
export function Ask({ graders, onStart }: { graders: Schema["GradersAnswer"]; onStart: () => void }) {
  const { key, filter } = useView();
  const [{ rollout }] = useViewState();
  const [wanted, setWanted] = useState<Wanted>(() => ({
    metrics: graders.metrics.slice(0, 1).map(({ name }) => name),
    own: keptMetrics(),
    rows: "filter",
    limit: 100,
    model: "",
    baseUrl: "",
  }));
  const change = (patch: Partial<Wanted>) => setWanted((old) => ({ ...old, ...patch }));
  const setOwn = (own: OwnMetric[]) => {
    keepMetrics(own);
    change({ own });
  };
  const body = bodyOf(wanted, filter, rollout);
  const isAsked = body.metrics.length > 0 && wanted.own.every(({ name, description }) => name.trim() !== "" && description.trim() !== "");
  const params = { path: { view: key } };
  const estimate = useQuery({
    queryKey: ["in", key, "estimate", body],
    queryFn: () => ask(api.POST("/api/view/{view}/grade/estimate", { params, body })),
    enabled: isAsked,
    placeholderData: keepPreviousData,
  });
  const start = useMutation({
    mutationFn: () => ask(api.POST("/api/view/{view}/grade", { params, body }) as Promise<{ data?: unknown; error?: unknown; response: Response }>),
    onSuccess: onStart,
  });
  const error = start.error ?? (isAsked ? estimate.error : null);
  return (
    <form
      className={css["ask"]}
      onSubmit={(event) => {
        event.preventDefault();
        start.mutate();
      }}
    >
      <fieldset>
        <legend>By what</legend>
        {graders.metrics.map(({ name, description }) => (
          <label key={name} className={css["metric"]} title={description}>
            <input
              type="checkbox"
              checked={wanted.metrics.includes(name)}
              onChange={(event) => change({ metrics: event.target.checked ? [...wanted.metrics, name] : wanted.metrics.filter((other) => other !== name) })}
            />
            {name.replaceAll("_", " ")}
          </label>
        ))}
        {wanted.own.map((metric, n) => (
          <OwnMetricRow
            // Metrics that are being typed have no name yet.
            key={n}
            metric={metric}
            number={n + 1}
            onChange={(patch) => setOwn(wanted.own.map((other, at) => (at === n ? { ...other, ...patch } : other)))}
            onRemove={() => setOwn(wanted.own.filter((_, at) => at !== n))}
          />
        ))}
        <Button label="Add a metric of your own" kind="quiet" onClick={() => setOwn([...wanted.own, NEW_METRIC])}>
          + Metric of your own
        </Button>
      </fieldset>
      <fieldset>
        <legend>Which rollouts</legend>
        <label className={css["metric"]}>
          <input type="radio" name="rows" checked={wanted.rows === "filter"} onChange={() => change({ rows: "filter" })} />
          {filter === "" ? "All rows" : "Rows of the filter"}, at most
          <input
            type="number"
            aria-label="Rollouts at most"
            min={1}
            max={10_000}
            value={wanted.limit}
            onChange={(event) => change({ limit: Math.round(event.target.valueAsNumber) || 1, rows: "filter" })}
          />
        </label>
        {rollout !== null && (
          <label className={css["metric"]}>
            <input type="radio" name="rows" checked={wanted.rows === "open"} onChange={() => change({ rows: "open" })} />
            Only the open one, <code>{rollout.slice(0, 8)}</code>
          </label>
        )}
      </fieldset>
      <fieldset>
        <legend>Who grades</legend>
        <label className={css["line"]}>
          Model
          <input type="text" spellCheck={false} placeholder={graders.model ?? "the endpoint’s first"} value={wanted.model} onChange={(event) => change({ model: event.target.value })} />
        </label>
        <label className={css["line"]}>
          Endpoint
          <select value={wanted.baseUrl} onChange={(event) => change({ baseUrl: event.target.value })}>
            {graders.base_urls.map((url, n) => (
              <option key={url} value={n === 0 ? "" : url}>
                {url}
              </option>
            ))}
          </select>
        </label>
      </fieldset>
      {isAsked && estimate.data && <Estimate estimate={estimate.data} />}
      {error && (
        <p className={css["error"]} role="alert">
          {error.message}
        </p>
      )}
      <button type="submit" className={css["start"]} disabled={!isAsked || start.isPending || estimate.data?.questions === 0}>
        Start grading
      </button>
    </form>
  );
}
