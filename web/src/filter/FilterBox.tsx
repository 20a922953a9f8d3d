import { useId, useState } from "react";
import { useView } from "@/api/view";
import { Button } from "@/parts/Button";
import { useKey } from "@/keys/keys";
import { useViewState } from "@/state/location";
import { Clauses } from "./Clauses";
import { commandFor } from "./command";
import { FilterField } from "./FilterField";
import { FilterHelp } from "./FilterHelp";
import css from "./FilterBox.module.css";

/** The rows that are looked at, in words: what was typed, and what was clicked. */
export function FilterBox() {
  const { filter } = useView();
  const [{ places }] = useViewState();
  const [help, setHelp] = useState(false);
  const [copied, setCopied] = useState(false);
  const field = useId();
  useKey({ keys: "q", label: "Type a filter", group: "Filter", run: () => document.getElementById(field)?.focus() });
  const command = commandFor(places, filter);
  const copy = () => {
    if (command === null) return;
    void navigator.clipboard.writeText(command).then(() => {
      setCopied(true);
      setTimeout(() => setCopied(false), 2000);
    });
  };
  return (
    <section aria-label="Filter">
      <header className={css["head"]}>
        <label htmlFor={field}>Filter</label>
        <span className={css["space"]} />
        {command !== null && (
          <Button label="Copy as a command for the shell" hotkey="Shift+Q" keyGroup="Filter" kind="quiet" onClick={copy} className={css["small"]}>
            {copied ? "Copied" : "Copy as command"}
          </Button>
        )}
        <Button label="What a filter can say" kind="quiet" onClick={() => setHelp(true)} className={css["small"]}>
          Help
        </Button>
      </header>
      <FilterField id={field} />
      <Clauses />
      {help && <FilterHelp onClose={() => setHelp(false)} />}
    </section>
  );
}
