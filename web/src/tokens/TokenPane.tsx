import { useCallback, useState } from "react";
import { useViewState } from "@/state/location";
import { HEATS, nextWorst, type Heat, type Model } from "./model";
import { Details } from "./Details";
import { Legend } from "./Legend";
import { Strip } from "./Strip";
import { TokenText } from "./TokenText";
import { Toolbar } from "./Toolbar";
import { WorstList } from "./WorstList";
import css from "./Tokens.module.css";

const asHeat = (name: string): Heat => HEATS.find((heat) => heat === name) ?? "logprob";

/** A token in the URL names its rollout too: it must not point into the next one that is opened. */
const nameOf = (id: string, at: number) => `${id.slice(0, 8)}.${at}`;

function placeIn(token: string | null, id: string, length: number): number | null {
  const [name, at] = (token ?? "").split(".");
  const place = Number(at);
  return name !== "" && name === id.slice(0, 8) && Number.isInteger(place) && place >= 0 && place < length ? place : null;
}

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
          Ids only: the server has no tokenizer. Start it with <code>--tokenizer DIR</code> to see what they say.
        </p>
      )}
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
