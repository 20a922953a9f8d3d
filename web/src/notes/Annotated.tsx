import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useState } from "react";
import { Button } from "@/parts/Button";
import { count } from "@/parts/numbers";
import { useViewState } from "@/state/location";
import { annotated, chosen, clauseOf, type Heap } from "./annotated";
import css from "./Annotated.module.css";

// Whoever reads does not always grade.
const Grading = lazy(() => import("@/grades/Grading").then((module) => ({ default: module.Grading })));

/** Rollouts that something was said of, people's words apart from models' grades; and the way to more of the latter. */
export function Annotated() {
  const [grading, setGrading] = useState(false);
  const heaps = useQuery({ queryKey: ["annotations"], queryFn: annotated });
  const people = heaps.data?.filter(({ kind }) => kind !== "grade") ?? [];
  const models = heaps.data?.filter(({ kind }) => kind === "grade") ?? [];
  return (
    <section aria-label="Notes and grades" className={css["annotated"]}>
      <div className={css["head"]}>
        <h2>Notes and grades</h2>
        <Button label="Grade rollouts with a model" hotkey="Shift+G" keyGroup="Notes" kind="quiet" onClick={() => setGrading(true)}>
          Grade…
        </Button>
      </div>
      {people.length > 0 && <Heaps label="Said by people" heaps={people} />}
      {models.length > 0 && <Heaps label="Graded by models" heaps={models} />}
      {heaps.error && <p className={css["none"]}>{heaps.error.message}</p>}
      {heaps.data?.length === 0 && <p className={css["none"]}>None yet. Press + or - on a rollout, # to tag it.</p>}
      {grading && (
        <Suspense fallback={null}>
          <Grading onClose={() => setGrading(false)} />
        </Suspense>
      )}
    </section>
  );
}

function Heaps({ label, heaps }: { label: string; heaps: Heap[] }) {
  const [{ clauses }, set] = useViewState();
  return (
    <ul aria-label={label} className={css["heaps"]}>
      {heaps.map((heap) => {
        const clause = clauseOf(heap);
        const name = heap.kind === "tag" ? `#${heap.name}` : heap.name;
        return (
          <li key={`${heap.kind} ${heap.name}`}>
            <button type="button" aria-pressed={clauses.includes(clause)} title={`Show only these rollouts: ${name}`} onClick={() => set({ clauses: chosen(clauses, clause) })}>
              <span>{name}</span>
              <span className={css["count"]}>{count(heap.ids.length)}</span>
            </button>
          </li>
        );
      })}
    </ul>
  );
}
