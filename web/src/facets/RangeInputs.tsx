import { useId, useState } from "react";
import type { Range } from "./choice";
import css from "./Facets.module.css";

interface Props {
  field: string;
  range: Range | null;
  low: number | null;
  high: number | null;
  onRange: (range: Range | null) => void;
}

/** The same range by keyboard: from and to, taken over by Enter or on leaving. */
export function RangeInputs({ field, range, low, high, onRange }: Props) {
  const [from, setFrom] = useState(range?.from?.toString() ?? "");
  const [to, setTo] = useState(range?.to?.toString() ?? "");
  const problem = useId();
  const wrong = [from, to].find((text) => text.trim() !== "" && !Number.isFinite(Number(text)));
  const numberOf = (text: string) => (text.trim() === "" ? null : Number(text));
  const take = () => {
    if (wrong !== undefined) return;
    const next = { from: numberOf(from), to: numberOf(to), open: range?.open === true && numberOf(to) === range.to };
    if (next.from === (range?.from ?? null) && next.to === (range?.to ?? null)) return;
    onRange(next.from === null && next.to === null ? null : next);
  };
  const end = (text: string, setText: (text: string) => void, name: string, limit: number | null) => (
    <input
      inputMode="decimal"
      value={text}
      aria-label={`${field} ${name}`}
      placeholder={limit === null ? "" : String(Number(limit.toPrecision(6)))}
      aria-invalid={wrong !== undefined && text === wrong}
      aria-describedby={wrong === undefined ? undefined : problem}
      onChange={(event) => setText(event.target.value)}
      onBlur={take}
      onKeyDown={(event) => event.key === "Enter" && take()}
    />
  );
  return (
    <>
      <div className={css["range"]}>
        {end(from, setFrom, "from", low)}
        <span aria-hidden>–</span>
        {end(to, setTo, range?.open === true ? "below" : "to", high)}
        {range && (
          <button type="button" className={css["drop"]} aria-label={`Any ${field}`} title={`Any ${field}`} onClick={() => onRange(null)}>
            ✕
          </button>
        )}
      </div>
      {wrong !== undefined && (
        <p id={problem} role="alert" className={css["wrong"]}>
          {wrong} is not a number; write it like 0.5 or 1e-3.
        </p>
      )}
    </>
  );
}
