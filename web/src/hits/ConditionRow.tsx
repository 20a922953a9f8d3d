import { useId, useState } from "react";
import type { Condition } from "@/state/url";
import { CHANNELS, channelName, KINDS } from "./conditions";
import css from "./SearchBox.module.css";

interface Props {
  condition: Condition;
  number: number;
  error: string | null;
  onChange: (patch: Partial<Condition>) => void;
  onRemove: (() => void) | null;
}

/** One condition: how it counts, what it looks for, and where. */
export function ConditionRow({ condition, number, error, onChange, onRemove }: Props) {
  const { kind, text, regex, case: hasCase, channels } = condition;
  const [choosing, setChoosing] = useState(false);
  const id = useId();
  const name = number === 0 ? "Search text" : `Search text ${number + 1}`;
  const where = channels.length === 0 ? "all channels" : channels.map(channelName).join(", ").toLowerCase();
  return (
    <div className={css["condition"]}>
      <div className={css["line"]}>
        {onRemove && (
          <select aria-label={`How condition ${number + 1} counts`} value={kind} onChange={(event) => onChange({ kind: event.target.value as Condition["kind"] })}>
            {Object.entries(KINDS).map(([value, label]) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
          </select>
        )}
        <input
          type="search"
          aria-label={name}
          aria-invalid={error !== null}
          aria-describedby={error === null ? undefined : id}
          placeholder={number === 0 ? "Text in rollouts (/)" : "Text"}
          spellCheck={false}
          autoComplete="off"
          value={text}
          onChange={(event) => onChange({ text: event.target.value })}
          onKeyDown={(event) => event.key === "Escape" && event.currentTarget.blur()}
        />
        <Flag label="Regular expression" sign=".*" on={regex} onChange={() => onChange({ regex: !regex })} />
        <Flag label="Upper and lower case differ" sign="Aa" on={hasCase} onChange={() => onChange({ case: !hasCase })} />
        {onRemove && (
          <button type="button" className={css["flag"]} aria-label={`Remove condition ${number + 1}`} title="Remove this condition" onClick={onRemove}>
            ✕
          </button>
        )}
      </div>
      {error !== null && (
        <p id={id} className={css["error"]} role="alert">
          {error}
        </p>
      )}
      <button type="button" className={css["where"]} aria-expanded={choosing} onClick={() => setChoosing(!choosing)}>
        in {where} <span aria-hidden="true">{choosing ? "▴" : "▾"}</span>
      </button>
      {choosing && (
        <fieldset className={css["channels"]}>
          <legend className="visually-hidden">Channels of condition {number + 1}</legend>
          {Object.entries(CHANNELS).map(([channel, label]) => (
            <label key={channel}>
              <input
                type="checkbox"
                checked={channels.includes(channel)}
                onChange={(event) =>
                  onChange({ channels: event.target.checked ? [...channels, channel] : channels.filter((other) => other !== channel) })
                }
              />
              {label}
            </label>
          ))}
        </fieldset>
      )}
    </div>
  );
}

function Flag({ label, sign, on, onChange }: { label: string; sign: string; on: boolean; onChange: () => void }) {
  return (
    <button type="button" className={css["flag"]} aria-label={label} title={label} aria-pressed={on} onClick={onChange}>
      {sign}
    </button>
  );
}
