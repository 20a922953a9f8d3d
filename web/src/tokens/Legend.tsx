import { legendOf } from "./scale";
import type { Heat, Model } from "./model";
import css from "./Tokens.module.css";

const TITLES: Record<Heat, string> = {
  logprob: "Probability",
  entropy: "Entropy in nats",
  advantage: "Advantage",
  version: "Version of the weights",
  none: "",
};

/** What the colours mean, and the marks that are there whatever the colour. */
export function Legend({ model, heat }: { model: Model; heat: Heat }) {
  const steps = model.has[heat] ? legendOf(model, heat) : [];
  return (
    <ul className={css["legend"]} aria-label="Legend">
      {steps.length > 0 && <li className={css["legendTitle"]}>{TITLES[heat]}</li>}
      {steps.map(({ colour, label }) => (
        <li key={colour}>
          <span className={`${css["swatch"] ?? ""} ${css[colour] ?? ""}`} aria-hidden="true" /> {label}
        </li>
      ))}
      <li>
        <span className={css["untrained"]}>not trained</span>
      </li>
      {model.promptLen > 0 && <li className={css["legendPrompt"]}>prompt</li>}
    </ul>
  );
}
