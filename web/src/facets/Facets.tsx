import { useView } from "@/api/view";
import { ErrorNotice } from "@/parts/Notice";
import { useKept } from "@/state/kept";
import { AddFacet } from "./AddFacet";
import { Marks } from "./Marks";
import { RangeFacet } from "./RangeFacet";
import { useFacets, type Counts } from "./useFacets";
import { ValueFacet } from "./ValueFacet";
import css from "./Facets.module.css";

const USUAL = ["reward", "data_source", "step", "status", "reason", "stop_reason", "lag", "version", "response_chars", "experiment_name"];
const NUMBERS = new Set(["reward", "step", "response_chars"]);
const VALUES = 8;
/** More different numbers than this are a range rather than a list. */
const LISTED = 24;

/** The values that the rows have, to be narrowed by clicks. */
export function Facets() {
  const { filter, answer } = useView();
  const [added, setAdded] = useKept<string[]>("facets", []);
  const kinds = new Map(answer.columns.map((column) => [column.name, column.kind]));
  const known = new Set([...kinds.keys(), ...answer.extras]);
  const fields = [...new Set([...USUAL, ...added])].filter((field) => known.has(field));
  const flags = answer.columns.filter((column) => column.kind === "flag").map((column) => column.name);
  // What there is at all decides what is shown, so that nothing comes and goes as the filter changes.
  const all = useFacets([...fields, ...flags], "", VALUES);
  const now = useFacets([...fields, ...flags], filter, VALUES, filter !== "");
  const counts = filter === "" ? all : now;
  if (all.error && !all.data) return <ErrorNotice error={all.error} title="Values could not be counted" />;
  if (!all.data) return <section aria-label="Values" />;
  const current = new Map(counts.data?.map((facet) => [facet.field, facet]));
  const shown = all.data.filter((facet) => facet.values.length > 1 || facet.distinct > 1 || added.includes(facet.field));
  const isRange = (facet: Counts) => facet.range !== null && (NUMBERS.has(facet.field) || kinds.get(facet.field) === "real" || facet.distinct > LISTED);
  return (
    <section aria-label="Values" className={css["facets"]}>
      {shown
        .filter((facet) => !flags.includes(facet.field))
        .map((facet) => {
          const props = {
            field: facet.field,
            whole: facet,
            counts: current.get(facet.field),
            onDrop: added.includes(facet.field) ? () => setAdded(added.filter((other) => other !== facet.field)) : undefined,
          };
          if (isRange(facet)) return <RangeFacet key={facet.field} {...props} isInteger={kinds.get(facet.field) === "integer"} />;
          return <ValueFacet key={facet.field} {...props} isNumber={facet.range !== null} />;
        })}
      <Marks flags={shown.filter((facet) => flags.includes(facet.field))} current={current} />
      <AddFacet names={[...known].filter((name) => !fields.includes(name) && !flags.includes(name))} onAdd={(name) => setAdded([...added, name])} />
    </section>
  );
}
