import { useView } from "@/api/view";
import { Button } from "@/parts/Button";
import { useViewState } from "@/state/location";
import { filterOf } from "@/state/url";
import { useFilterCheck } from "./useFilterCheck";
import css from "./Clauses.module.css";

/** What was narrowed by clicks; all of it holds at once. */
export function Clauses() {
  const [{ q, clauses }, set] = useViewState();
  if (clauses.length === 0) return q === "" ? null : <ClearAll />;
  return (
    <>
      <ul className={css["chips"]} aria-label="Narrowed by clicks">
        {clauses.map((clause) => (
          <Chip
            key={clause}
            clause={clause}
            onEdit={() => set({ q: filterOf({ q, clauses: [clause] }), clauses: clauses.filter((other) => other !== clause) })}
            onRemove={() => set({ clauses: clauses.filter((other) => other !== clause) })}
          />
        ))}
      </ul>
      <ClearAll />
    </>
  );
}

function Chip({ clause, onEdit, onRemove }: { clause: string; onEdit: () => void; onRemove: () => void }) {
  const { filterError } = useView();
  // Only when the whole is refused does it matter which of them is to blame.
  const { error } = useFilterCheck(clause, filterError !== null);
  return (
    <li className={css["chip"]} data-wrong={error !== null}>
      <button type="button" className={css["text"]} title={error?.message ?? `${clause}\nClick to edit it in the filter above`} onClick={onEdit}>
        {clause}
      </button>
      <button type="button" className={css["remove"]} aria-label={`Remove ${clause}`} title="Remove" onClick={onRemove}>
        ✕
      </button>
      {error && (
        <p role="alert" className={css["problem"]}>
          {error.message}
        </p>
      )}
    </li>
  );
}

function ClearAll() {
  const [, set] = useViewState();
  return (
    <div className={css["clear"]}>
      <Button label="Clear the filter" hotkey="Shift+X" keyGroup="Filter" kind="quiet" onClick={() => set({ q: "", clauses: [] })}>
        Clear all
      </Button>
    </div>
  );
}
