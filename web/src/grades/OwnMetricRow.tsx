import type { OwnMetric } from "./wanted";
import css from "./Grading.module.css";

interface Props {
  metric: OwnMetric;
  number: number;
  onChange: (patch: Partial<OwnMetric>) => void;
  onRemove: () => void;
}

/** A metric of one's own: its name, what a high score means, and what scores there are. */
export function OwnMetricRow({ metric, number, onChange, onRemove }: Props) {
  const { name, description, kind, min, max } = metric;
  return (
    <div className={css["own"]} role="group" aria-label={`Metric ${number} of your own`}>
      <div className={css["row"]}>
        <input aria-label="Name" placeholder="name" maxLength={64} spellCheck={false} value={name} onChange={(event) => onChange({ name: event.target.value })} />
        <select aria-label="Kind" value={kind} onChange={(event) => onChange({ kind: event.target.value as OwnMetric["kind"] })}>
          <option value="float">number</option>
          <option value="int">whole number</option>
          <option value="bool">yes or no</option>
        </select>
        {kind !== "bool" && (
          <>
            <input aria-label="From" inputMode="decimal" size={3} value={min} onChange={(event) => onChange({ min: event.target.value })} />
            <input aria-label="To" inputMode="decimal" size={3} value={max} onChange={(event) => onChange({ max: event.target.value })} />
          </>
        )}
        <button type="button" aria-label={`Remove metric ${number}`} title="Remove this metric" onClick={onRemove}>
          ✕
        </button>
      </div>
      <textarea aria-label="What a high score means" placeholder="What a high score means, in words for the model" rows={2} value={description} onChange={(event) => onChange({ description: event.target.value })} />
    </div>
  );
}
