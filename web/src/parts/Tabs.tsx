import type { ReactNode } from "react";
import css from "./Tabs.module.css";

interface Props<T extends string> {
  label: string;
  names: Record<T, string>;
  chosen: T;
  onChoose: (name: T) => void;
  /** At the right end of the line. */
  children?: ReactNode;
  /** Keys that choose them, for the tooltips. */
  hotkeys?: Partial<Record<T, string>>;
}

/** Tabs as the keyboard knows them: one stop, arrows between them. */
export function Tabs<T extends string>({ label, names, chosen, onChoose, children, hotkeys }: Props<T>) {
  const all = Object.keys(names) as T[];
  const move = (by: number) => {
    const next = all[(all.indexOf(chosen) + by + all.length) % all.length];
    if (next !== undefined) onChoose(next);
  };
  return (
    <div className={css["line"]}>
      <div className={css["tabs"]} role="tablist" aria-label={label}>
        {all.map((name) => (
          <button
            key={name}
            type="button"
            role="tab"
            className={css["tab"]}
            aria-selected={name === chosen}
            tabIndex={name === chosen ? 0 : -1}
            title={hotkeys?.[name] === undefined ? names[name] : `${names[name]} (${hotkeys[name]})`}
            onClick={() => onChoose(name)}
            onKeyDown={(event) => {
              if (event.key !== "ArrowRight" && event.key !== "ArrowLeft") return;
              event.preventDefault();
              move(event.key === "ArrowRight" ? 1 : -1);
              const parent = event.currentTarget.parentElement;
              requestAnimationFrame(() => parent?.querySelector<HTMLElement>('[aria-selected="true"]')?.focus());
            }}
          >
            {names[name]}
          </button>
        ))}
      </div>
      {children}
    </div>
  );
}
