import type { ReactNode } from "react";
import { useKept } from "@/state/kept";
import css from "./Facets.module.css";

interface Props {
  name: string;
  /** What its values are about. */
  about?: string | undefined;
  /** At the right of its title. */
  note?: ReactNode;
  onDrop?: (() => void) | undefined;
  children: ReactNode;
}

/** One facet under its title; whether it is folded is remembered. */
export function Fold({ name, about, note, onDrop, children }: Props) {
  const [folded, setFolded] = useKept<string[]>("folded", []);
  const isOpen = !folded.includes(name);
  return (
    <section className={css["fold"]} aria-label={name}>
      <header className={css["title"]}>
        <button type="button" aria-expanded={isOpen} title={about} onClick={() => setFolded(isOpen ? [...folded, name] : folded.filter((other) => other !== name))}>
          <span aria-hidden className={css["arrow"]}>
            {isOpen ? "▾" : "▸"}
          </span>
          {name}
        </button>
        <span className={css["note"]}>{note}</span>
        {onDrop && (
          <button type="button" className={css["drop"]} aria-label={`Do not list ${name}`} title={`Do not list ${name}`} onClick={onDrop}>
            ✕
          </button>
        )}
      </header>
      {isOpen && children}
    </section>
  );
}
