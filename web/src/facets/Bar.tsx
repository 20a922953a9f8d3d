import { memo } from "react";
import { count } from "@/parts/numbers";
import css from "./Facets.module.css";

interface Props {
  label: string;
  n: number;
  /** What a full bar stands for. */
  most: number;
  state: "only" | "not" | null;
  onTurn: (which: "only" | "not") => void;
  isVague?: boolean;
  title?: string | undefined;
}

/** A value and how often it occurs. A click keeps only it, a click with Alt or on "not" leaves it out. */
export const Bar = memo(function Bar({ label, n, most, state, onTurn, isVague = false, title }: Props) {
  return (
    <li className={css["bar"]} data-state={state}>
      <button
        type="button"
        className={css["value"]}
        aria-pressed={state === "only"}
        title={`${title ?? label}: ${count(n)}\nClick to see only these; with Alt, to leave them out`}
        onClick={(event) => onTurn(event.altKey ? "not" : "only")}
      >
        <span className={css["share"]} style={{ width: most > 0 ? `${Math.max(1, (100 * n) / most)}%` : 0 }} />
        <span className={css["label"]} data-vague={isVague}>
          {label}
        </span>
        <span className={css["count"]}>{count(n)}</span>
      </button>
      <button type="button" className={css["not"]} aria-pressed={state === "not"} aria-label={`Leave out ${label}`} title={`Leave out ${label}`} onClick={() => onTurn("not")}>
        not
      </button>
    </li>
  );
});
