import { Button } from "@/parts/Button";
import { count, counted } from "@/parts/numbers";
import { HEATS, type Heat, type Model } from "./model";
import css from "./Tokens.module.css";

const NAMES: Record<Heat, string> = { logprob: "Log-prob", entropy: "Entropy", advantage: "Advantage", version: "Version", none: "None" };

const WITHOUT: Record<Heat, string> = {
  logprob: "The row has no log-probs",
  entropy: "The row has no entropies",
  advantage: "The row has no advantages by token",
  version: "The row does not say which weights sampled it",
  none: "",
};

interface Props {
  model: Model;
  heat: Heat;
  onHeat: (heat: Heat) => void;
  onWorst: (by: 1 | -1) => void;
  listed: boolean;
  onListed: (listed: boolean) => void;
  beside: boolean;
  onBeside: (beside: boolean) => void;
}

export function Toolbar({ model, heat, onHeat, onWorst, listed, onListed, beside, onBeside }: Props) {
  const { has, length, promptLen, trained, worst } = model;
  const there = HEATS.filter((name) => has[name]);
  const cycle = () => onHeat(there[(there.indexOf(heat) + 1) % there.length] ?? "none");
  const response = length - promptLen;
  return (
    <div className={css["bar"]}>
      <div className={css["group"]} role="group" aria-label="Colour by">
        {HEATS.map((name) => (
          <Button
            key={name}
            kind="quiet"
            label={has[name] ? `Colour by ${name === "none" ? "nothing" : NAMES[name].toLowerCase()}` : WITHOUT[name]}
            pressed={heat === name}
            disabled={!has[name]}
            onClick={() => onHeat(name)}
          >
            {NAMES[name]}
          </Button>
        ))}
        <Button kind="quiet" label="Colour by the next measure" hotkey="h" keyGroup="Tokens" onClick={cycle}>
          ⟳
        </Button>
      </div>
      <div className={css["group"]}>
        <Button label="Least likely token before" hotkey="Shift+W" keyGroup="Tokens" disabled={worst.length === 0} onClick={() => onWorst(-1)}>
          ‹
        </Button>
        <Button label="Next least likely token" hotkey="w" keyGroup="Tokens" disabled={worst.length === 0} onClick={() => onWorst(1)}>
          Worst ›
        </Button>
        <Button label="List the least likely tokens" hotkey="l" keyGroup="Tokens" pressed={listed} disabled={worst.length === 0} onClick={() => onListed(!listed)}>
          List
        </Button>
        {/* Its key listens in the reader, so that it works from the chat too. */}
        <Button label="Chat and tokens side by side (b)" pressed={beside} onClick={() => onBeside(!beside)}>
          Chat
        </Button>
      </div>
      <p className={css["facts"]}>
        {count(promptLen)} prompt + {counted(response, "response token")}, {trained === response ? "all" : count(trained)} trained;{" "}
        {model.isExact ? "exactly as sampled" : <strong>made from text again, may differ from what was sampled</strong>}
      </p>
    </div>
  );
}
