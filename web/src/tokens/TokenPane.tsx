import { useCallback, useState } from "react";
import { useViewState } from "@/state/location";
import { HEATS, nextWorst, type Heat, type Model } from "./model";
import { nameOf, placeIn } from "./place";
import { Details } from "./Details";
import { Legend } from "./Legend";
import { Strip } from "./Strip";
import { TokenText } from "./TokenText";
import { Toolbar } from "./Toolbar";
import { WorstList } from "./WorstList";
import css from "./Tokens.module.css";

const asHeat = (name: string): Heat => HEATS.find((heat) => heat === name) ?? "logprob";

interface Props {
  id: string;
  model: Model;
}

export function TokenPane({ id, model }: Props) {
  const [{ heat: named, token, beside }, set] = useViewState();
  const heat = asHeat(named);
  const chosen = placeIn(token, id, model.length);
  const [hovered, setHovered] = useState<number | null>(null);
  const [listed, setListed] = useState(false);
  const choose = useCallback((at: number) => set({ token: nameOf(id, at) }, "replace"), [id, set]);
  const step = (by: 1 | -1) => {
    const next = nextWorst(model.worst, chosen, by);
    if (next !== null) choose(next);
  };
  return (
    <section className={css["pane"]} aria-label="Tokens">
      <Toolbar
        model={model}
        heat={heat}
        onHeat={(next) => set({ heat: next }, "replace")}
        onWorst={step}
        listed={listed}
        onListed={setListed}
        beside={beside}
        onBeside={(next) => set({ beside: next })}
      />
      {!model.hasTexts && (
        <p className={css["hint"]}>
          Ids only: the row has no texts for its tokens. Start the server with <code>--tokenizer DIR</code> to see what they say.
        </p>
      )}
      {model.problems.map((problem) => (
        <p key={problem} className={css["hint"]}>
          Left out: {problem}
        </p>
      ))}
      <Legend model={model} heat={heat} />
      {(model.has.logprob || (heat === "entropy" && model.has.entropy)) && <Strip model={model} heat={heat} chosen={chosen} onChoose={choose} />}
      <div className={css["middle"]}>
        <TokenText model={model} heat={heat} chosen={chosen} onChoose={choose} onHover={setHovered} />
        {listed && <WorstList model={model} chosen={chosen} onChoose={choose} />}
      </div>
      <Details model={model} at={hovered ?? chosen} />
    </section>
  );
}
