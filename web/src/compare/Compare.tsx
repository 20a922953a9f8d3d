import { useId, useState } from "react";
import { Button } from "@/parts/Button";
import { Choose } from "@/parts/Choose";
import { ErrorNotice, Notice } from "@/parts/Notice";
import { count, counted, figure } from "@/parts/numbers";
import { useViewState } from "@/state/location";
import { Pairs } from "./Pairs";
import { PAIRS_AT_ONCE, useCompare, type Comparison } from "./useCompare";
import css from "./Compare.module.css";

const SORTS = { delta: "Worst there first", "-delta": "Best there first", "-n": "Most rollouts first" };

/** This run against another, prompt by prompt: means of different prompts say little. */
export function Compare() {
  const [{ against }, set] = useViewState();
  const [sort, setSort] = useState("delta");
  const [offset, setOffset] = useState(0);
  const { comparison, error, isIndexing } = useCompare(against, sort, offset);
  const { data } = comparison;
  return (
    <div className={css["compare"]}>
      <Against against={against} onChoose={(places) => set({ against: places })} />
      {against.length === 0 ? (
        <Notice title="Compare with another run">Name its place above. Only prompts that both runs have are compared, each by its mean reward.</Notice>
      ) : error && !data ? (
        <ErrorNotice error={error} title="The other run cannot be compared" />
      ) : !data ? null : data.shared === 0 ? (
        <Notice title="The two have no prompt in common">
          {`${counted(data.only_here, "prompt")} here, ${count(data.only_there)} there${isIndexing ? "; the other is still being indexed" : ""}. A filter may hide the common ones.`}
        </Notice>
      ) : (
        <>
          <Sentence data={data} />
          <div className={css["tools"]}>
            <Choose label="Order of the prompts" options={SORTS} value={sort} onChoose={(next) => { setSort(next); setOffset(0); }} />
            <span className={css["quiet"]}>{`${count(offset + 1)}–${count(Math.min(offset + PAIRS_AT_ONCE, data.shared))} of ${count(data.shared)}`}</span>
            <Button label="Earlier prompts" disabled={offset === 0} onClick={() => setOffset(Math.max(0, offset - PAIRS_AT_ONCE))}>
              ‹
            </Button>
            <Button label="Later prompts" disabled={offset + PAIRS_AT_ONCE >= data.shared} onClick={() => setOffset(offset + PAIRS_AT_ONCE)}>
              ›
            </Button>
          </div>
          <Pairs pairs={data.pairs} against={against} />
        </>
      )}
    </div>
  );
}

function Against({ against, onChoose }: { against: string[]; onChoose: (places: string[]) => void }) {
  const [text, setText] = useState(against.join(" "));
  const field = useId();
  return (
    <form
      className={css["against"]}
      onSubmit={(event) => {
        event.preventDefault();
        onChoose(text.split(/\s+/).filter(Boolean));
      }}
    >
      <label htmlFor={field}>Compare with</label>
      <input id={field} value={text} placeholder="/data/run2, s3://bucket/run2 or yard://RUN" onChange={(event) => setText(event.target.value)} spellCheck={false} />
      <button type="submit">Compare</button>
    </form>
  );
}

function Sentence({ data }: { data: Comparison }) {
  const { delta_mean: delta = null, delta_low: low = null, delta_high: high = null } = data;
  const sure = low !== null && high !== null && (low > 0 || high < 0);
  return (
    <dl className={css["sentence"]}>
      <div>
        <dt>{counted(data.shared, "shared prompt")}</dt>
        <dd>{`${count(data.only_here)} only here, ${count(data.only_there)} only there`}</dd>
      </div>
      <div>
        <dt>{`${figure(data.mean_here)} → ${figure(data.mean_there)}`}</dt>
        <dd>mean reward here and there</dd>
      </div>
      <div>
        <dt>{`${delta !== null && delta > 0 ? "+" : ""}${figure(delta)}`}</dt>
        <dd>{low === null || high === null ? "difference" : `95% of ${figure(low)} to ${figure(high)}${sure ? "" : ": may be chance"}`}</dd>
      </div>
      <div>
        <dt>{`${count(data.better)} better, ${count(data.worse)} worse`}</dt>
        <dd>{`${count(data.same)} the same`}</dd>
      </div>
    </dl>
  );
}
