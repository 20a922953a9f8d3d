import { useView } from "@/api/view";
import { Bar } from "./Bar";
import { turned } from "./choice";
import { Fold } from "./Fold";
import { useChoice, type Counts } from "./useFacets";
import css from "./Facets.module.css";

interface Props {
  /** Those that some rows have and some have not. */
  flags: Counts[];
  /** Counts under the filter. */
  current: Map<string, Counts>;
}

function raised(counts: Counts | undefined): number {
  return counts?.values.find((value) => value.value === true)?.count ?? 0;
}

/** All flags together: of each, how many rows have it. */
export function Marks({ flags, current }: Props) {
  if (flags.length === 0) return null;
  const most = Math.max(...flags.map((flag) => raised(current.get(flag.field))), 1);
  return (
    <Fold name="Marks" about="What is true of a rollout or is not">
      <ul className={css["values"]}>
        {flags.map((flag) => (
          <Mark key={flag.field} field={flag.field} n={raised(current.get(flag.field))} most={most} />
        ))}
      </ul>
    </Fold>
  );
}

function Mark({ field, n, most }: { field: string; n: number; most: number }) {
  const { answer } = useView();
  const { choice, choose } = useChoice(field);
  const about = answer.columns.find((column) => column.name === field)?.about;
  const state = choice.only.includes(true) ? "only" : choice.not.includes(true) ? "not" : null;
  return (
    <Bar
      label={field}
      title={about === undefined ? field : `${field}, ${about}`}
      n={n}
      most={most}
      state={state}
      onTurn={(which) => choose(turned({ ...choice, only: choice.only.filter((value) => value === true), range: null }, which, true), true)}
    />
  );
}
