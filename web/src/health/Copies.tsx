import { api, ask } from "@/api/client";
import { useAsk } from "@/api/view";
import { ErrorNotice } from "@/parts/Notice";
import { count } from "@/parts/numbers";
import { useViewState } from "@/state/location";
import css from "./Health.module.css";

const MOST = 1000;
const SQL = `select id, source_file, line from all_rows where copy order by row limit ${MOST}`;

/** Where copies stand. The rollout itself is among the rows once, and knows all its places. */
export function Copies() {
  const [, set] = useViewState();
  const copies = useAsk(["copies"], (view) => ask(api.POST("/api/view/{view}/sql", { params: { path: { view } }, body: { sql: SQL, limit: MOST } })));
  if (copies.error) return <ErrorNotice error={copies.error} title="The copies could not be listed" />;
  const rows = (copies.data?.rows ?? []) as unknown as [string, string, number | null][];
  return (
    <>
      <ul aria-label="Copies">
        {rows.map(([id, file, line]) => (
          <li key={`${file}:${line ?? ""}`} className={css["line"]}>
            <button type="button" onClick={() => set({ rollout: id, tab: "info" })}>
              {file}
              {line !== null && `, line ${count(line)}`} <span className={css["show"]}>— show it</span>
            </button>
          </li>
        ))}
      </ul>
      {rows.length === MOST && <p className={css["note"]}>The first {count(MOST)}.</p>}
    </>
  );
}
