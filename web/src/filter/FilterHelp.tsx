import { Panel } from "@/parts/Panel";
import { useView } from "@/api/view";
import { useViewState } from "@/state/location";
import css from "./FilterHelp.module.css";

const EXAMPLES: [string, string][] = [
  ['reward > 0.5 and data_source contains "math"', "Both hold. Names and words may be in any case."],
  ["step between 100 and 140 and not validate", "A flag stands alone; not turns anything round."],
  ['status in ("dropped", "failed")', "One of a list."],
  ["reward is null or odd", "No reward was given, or something is not as the format says."],
  ["lag > 2 and mixed", "Stale, with tokens from more than one version of the weights."],
  ['uid matches "^task-[0-9]+$"', "A regular expression; like, startswith and endswith are there too."],
  ["reward.format >= 0.5", "A part of the reward, or any other attribute, by its dotted name."],
  ["response_chars / tokens > 6 or length(reason) > 80", "Sums and functions."],
  ['time > "2026-01-16T08:00"', "Times as they are written everywhere."],
];

/** The language of filters by example, and the names it knows here. */
export function FilterHelp({ onClose }: { onClose: () => void }) {
  const { answer } = useView();
  const [, set] = useViewState();
  return (
    <Panel title="What a filter can say" onClose={onClose}>
      <ul className={css["examples"]}>
        {EXAMPLES.map(([example, about]) => (
          <li key={example}>
            <button
              type="button"
              title="Try it"
              onClick={() => {
                set({ q: example });
                onClose();
              }}
            >
              <code>{example}</code>
            </button>
            <span>{about}</span>
          </li>
        ))}
      </ul>
      <h3 className={css["heading"]}>Fields</h3>
      <dl className={css["fields"]}>
        {answer.columns.map((column) => (
          <div key={column.name}>
            <dt>
              <code>{column.name}</code> <span className={css["kind"]}>{column.kind}</span>
            </dt>
            <dd>{column.about}</dd>
          </div>
        ))}
        {answer.extras.map((name) => (
          <div key={name}>
            <dt>
              <code>{name}</code>
            </dt>
            <dd>an attribute of these rows</dd>
          </div>
        ))}
      </dl>
    </Panel>
  );
}
