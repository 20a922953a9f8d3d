import { useView } from "@/api/view";
import { Button } from "@/parts/Button";
import { ErrorNotice, Notice } from "@/parts/Notice";
import { bytes } from "@/parts/numbers";
import { useViewState } from "@/state/location";
import css from "./Rows.module.css";

/** Stands where rows would be, and says what to do. */
export function Empty({ why, what = "row" }: { why: "loading" | "nothing" | Error; what?: "row" | "group" }) {
  return (
    <div className={css["over"]}>
      {why === "loading" ? <Notice title="Looking for rows" /> : why === "nothing" ? <Nothing what={what} /> : <ErrorNotice error={why} title={`The ${what}s could not be read`} />}
    </div>
  );
}

function Nothing({ what }: { what: string }) {
  const { answer, filter } = useView();
  const [{ clauses, q }, set] = useViewState();
  const { done, bytes_done, bytes: size } = answer.indexing;
  if (!done) {
    return (
      <Notice title={`No ${what} yet`}>
        Still indexing: {bytes(bytes_done)} of {bytes(size)}.
      </Notice>
    );
  }
  if (filter === "") return <Notice title={`There is no ${what} here`}>The places that are open hold no rollouts that could be read.</Notice>;
  const last = clauses.at(-1);
  return (
    <Notice title={`No ${what} fits the filter`}>
      {last !== undefined ? (
        <Button label={`Drop ${last}`} hotkey="Backspace" keyGroup="Rows" onClick={() => set({ clauses: clauses.slice(0, -1) })}>
          Drop “{last.length > 48 ? `${last.slice(0, 48)}…` : last}”
        </Button>
      ) : (
        <Button label={`Drop ${q}`} hotkey="Backspace" keyGroup="Rows" onClick={() => set({ q: "" })}>
          Drop “{q.length > 48 ? `${q.slice(0, 48)}…` : q}”
        </Button>
      )}
    </Notice>
  );
}
