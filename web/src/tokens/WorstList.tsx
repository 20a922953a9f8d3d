import { count, figure } from "@/parts/numbers";
import type { Model } from "./model";
import css from "./Tokens.module.css";

const SHOWN = 50;

interface Props {
  model: Model;
  chosen: number | null;
  onChoose: (at: number) => void;
}

/** The least likely tokens by rank, to jump to. */
export function WorstList({ model, chosen, onChoose }: Props) {
  return (
    <ol className={css["worst"]} aria-label="Least likely tokens">
      {model.worst.slice(0, SHOWN).map((at) => (
        <li key={at}>
          <button type="button" aria-current={at === chosen} onClick={() => onChoose(at)}>
            <span className={css["figure"]}>{figure(model.token(at).logprob)}</span>
            <code>{model.shown(at).trim() || "␣"}</code>
            <span className={css["place"]}>{count(at)}</span>
          </button>
        </li>
      ))}
    </ol>
  );
}
