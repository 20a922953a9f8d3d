import { useRef, useState } from "react";
import { useKey } from "@/keys/keys";
import { Button } from "@/parts/Button";
import { useViewState } from "@/state/location";
import type { Condition } from "@/state/url";
import { blamed, mistakeIn, NEW_CONDITION, regexMessage } from "./conditions";
import { ConditionRow } from "./ConditionRow";
import { useHits } from "./useHits";
import css from "./SearchBox.module.css";

/** Words to look for in everything that was said; what was looked for last is in the URL. */
export function SearchBox() {
  const [{ search }] = useViewState();
  // Another search by a link or a step back starts over from it; typing alone does not change the URL.
  return <Conditions key={JSON.stringify(search)} searched={search} />;
}

function Conditions({ searched }: { searched: Condition[] }) {
  const [, set] = useViewState();
  const { error } = useHits();
  const [drafts, setDrafts] = useState(searched.length > 0 ? searched : [NEW_CONDITION]);
  const [mistake, setMistake] = useState<string | null>(null);
  const form = useRef<HTMLFormElement>(null);
  const focus = (n: number) => {
    requestAnimationFrame(() => form.current?.querySelectorAll<HTMLElement>("input[type=search]")[n]?.focus());
  };
  useKey({ keys: "/", label: "Search the text", group: "Search", run: () => focus(0) });
  const change = (n: number, patch: Partial<Condition>) => {
    setMistake(null);
    setDrafts(drafts.map((draft, other) => (other === n ? { ...draft, ...patch } : draft)));
  };
  const run = () => {
    const wanted = drafts.filter(({ text }) => text !== "");
    const wrong = mistakeIn(wanted);
    setMistake(wrong);
    if (wrong === null) set({ search: wanted, list: wanted.length > 0 ? "hits" : "rows" });
  };
  const isAsWas = JSON.stringify(drafts) === JSON.stringify(searched);
  const toBlame = isAsWas ? blamed(error, drafts) : null;
  return (
    <form
      ref={form}
      role="search"
      aria-label="Text"
      className={css["box"]}
      onSubmit={(event) => {
        event.preventDefault();
        run();
      }}
    >
      <div className={css["head"]}>
        <h2>Search</h2>
        {searched.length > 0 && (
          <Button label="Clear the search" kind="quiet" onClick={() => set({ search: [], list: "rows" })}>
            Clear
          </Button>
        )}
      </div>
      {drafts.map((draft, n) => (
        <ConditionRow
          // Conditions have no name but their place.
          key={n}
          condition={draft}
          number={n}
          error={toBlame === n && error ? regexMessage(error.message) : null}
          onChange={(patch) => change(n, patch)}
          onRemove={drafts.length > 1 ? () => setDrafts(drafts.filter((_, other) => other !== n)) : null}
        />
      ))}
      {mistake !== null && (
        <p className={css["error"]} role="alert">
          {mistake}
        </p>
      )}
      <div className={css["foot"]}>
        <Button
          label="Add a condition"
          kind="quiet"
          onClick={() => {
            setDrafts([...drafts, NEW_CONDITION]);
            focus(drafts.length);
          }}
        >
          + Condition
        </Button>
        <button type="submit" className={css["go"]} title="Search (Enter)" disabled={drafts.every(({ text }) => text === "")}>
          Search
        </button>
      </div>
    </form>
  );
}
