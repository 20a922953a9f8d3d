import { useState } from "react";
import { useView } from "@/api/view";
import { count } from "@/parts/numbers";
import { Bar } from "./Bar";
import { isSame, turned, type Value } from "./choice";
import { Fold } from "./Fold";
import { useChoice, useFacets, type Counts } from "./useFacets";
import css from "./Facets.module.css";

interface Props {
  field: string;
  /** Over all rows. */
  whole: Counts;
  /** Under the filter. */
  counts: Counts | undefined;
  isNumber: boolean;
  onDrop: (() => void) | undefined;
}

const FEW = 8;
/** As many as are worth a list; more are found by typing a filter. */
const MANY = 1000;

function labelOf(value: Value): string {
  return value === null ? "not given" : value === "" ? "empty" : String(value);
}

export function ValueFacet({ field, whole, counts, isNumber, onDrop }: Props) {
  const { answer } = useView();
  const { choice, isChosen, around, choose } = useChoice(field);
  const [expanded, setExpanded] = useState(false);
  const own = useFacets([field], around, expanded ? MANY : FEW, isChosen || expanded);
  const shown = isChosen || expanded ? (own.data?.[0] ?? counts) : counts;
  const values = [...(shown?.values ?? [])];
  // What is chosen stays in sight, also when no row has it any more.
  for (const value of [...choice.only, ...choice.not]) {
    if (!values.some((other) => isSame(other.value, value))) values.push({ value, count: 0 });
  }
  if (isNumber) values.sort((a, b) => Number(a.value ?? Infinity) - Number(b.value ?? Infinity));
  const most = Math.max(...values.map((value) => value.count), 1);
  const withNulls = whole.values.some((value) => value.value === null) || whole.distinct > whole.values.length;
  const distinct = shown?.distinct ?? 0;
  const stateOf = (value: Value) => {
    if (choice.only.some((other) => isSame(other, value))) return "only";
    return choice.not.some((other) => isSame(other, value)) ? "not" : null;
  };
  return (
    <Fold name={field} about={answer.columns.find((column) => column.name === field)?.about} onDrop={onDrop}>
      <ul className={css["values"]} data-long={expanded}>
        {values.map(({ value, count: n }) => (
          <Bar
            key={JSON.stringify(value)}
            label={labelOf(value)}
            isVague={value === null || value === ""}
            n={n}
            most={most}
            state={stateOf(value)}
            onTurn={(which) => choose(turned(choice, which, value), withNulls)}
          />
        ))}
      </ul>
      {values.length === 0 && <p className={css["none"]}>No row is left.</p>}
      {(distinct > FEW || expanded) && (
        <button type="button" className={css["more"]} onClick={() => setExpanded(!expanded)}>
          {expanded ? "Show fewer" : `Show all ${count(distinct)} values`}
        </button>
      )}
      {expanded && distinct > MANY && <p className={css["none"]}>The {count(MANY)} most frequent; type a filter for others.</p>}
    </Fold>
  );
}
