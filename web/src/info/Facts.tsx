import { Button } from "@/parts/Button";
import { toggled, useViewState } from "@/state/location";
import { equals } from "@/state/url";
import css from "./Info.module.css";

export interface Fact {
  name: string;
  value: unknown;
  /** If it is not shown as it is. */
  shown?: string;
  /** What the name means. */
  about?: string;
  /** Whether a filter can name it; so it is unless said otherwise. */
  isColumn?: boolean;
}

/** What the filter language takes for a name without quoting it. */
const NAME = /^[A-Za-z_][\w]*(\.[\w]+)*$/;

export function clauseOf({ name, value, isColumn = true }: Fact): string | null {
  if (!isColumn || !NAME.test(name) || (typeof value === "object" && value !== null)) return null;
  return equals(name, value);
}

/** Names and values, each with a way to all rows that share it. */
export function Facts({ title, facts, note }: { title: string; facts: Fact[]; note?: string | undefined }) {
  if (facts.length === 0) return null;
  return (
    <section aria-label={title}>
      <h2 className={css["title"]}>{title}</h2>
      {note !== undefined && <p className={css["note"]}>{note}</p>}
      <dl className={css["facts"]}>
        {facts.map((fact) => (
          <div key={fact.name} className={css["fact"]}>
            <dt title={fact.about}>{fact.name}</dt>
            <dd>
              <bdi>{fact.shown ?? String(fact.value)}</bdi>
            </dd>
            <dd>
              <FilterTo clause={clauseOf(fact)} />
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

export function FilterTo({ clause }: { clause: string | null }) {
  const [{ clauses }, set] = useViewState();
  if (clause === null) return null;
  const isOn = clauses.includes(clause);
  return (
    <Button kind="quiet" className={css["filter"]} label={isOn ? `Take away the filter ${clause}` : `Filter to ${clause}`} pressed={isOn} onClick={() => set({ clauses: toggled(clauses, clause) })}>
      {isOn ? "filtered" : "filter"}
    </Button>
  );
}
