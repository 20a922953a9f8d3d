import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { useView } from "@/api/view";
import { Button } from "@/parts/Button";
import { bytes, count, counted } from "@/parts/numbers";
import { useViewState } from "@/state/location";
import { OpenPanel } from "./OpenPanel";
import { remember, shortName } from "./places";
import css from "./Sources.module.css";

/** What is open, how much of it there is, and how far it is indexed. */
export function Sources() {
  const { answer, isIndexing, refresh } = useView();
  const queries = useQueryClient();
  const [{ places, follow }, set] = useViewState();
  const [isOpening, setIsOpening] = useState(false);
  const asked = JSON.stringify(places);
  useEffect(() => remember(JSON.parse(asked) as string[]), [asked]);
  const reopen = () => void queries.invalidateQueries({ queryKey: ["open"] }).then(refresh);
  const { indexing } = answer;
  const start = places.length === 1 && places[0] !== undefined && !places[0].startsWith("yard://") ? folderOf(places[0]) : null;
  return (
    <section aria-label="Sources">
      <ul className={css["places"]}>
        {places.map((place) => (
          <li key={place} className={css["place"]}>
            <span className={css["name"]} title={place}>
              {shortName(place)}
            </span>
            {places.length > 1 && (
              <button type="button" aria-label={`Close ${place}`} title={`Close ${place}`} onClick={() => set({ places: places.filter((other) => other !== place) })}>
                ✕
              </button>
            )}
          </li>
        ))}
      </ul>
      <p className={css["amount"]}>
        {/* The bytes and files of a run that goes on are those of the last look, not of all. */}
        {counted(indexing.rows, "row")}
        {!follow && `, ${bytes(indexing.bytes)} in ${counted(indexing.files, "file")}`}
      </p>
      {isIndexing && <Progress done={indexing.bytes_done} of={indexing.bytes} waiting={indexing.waiting} />}
      {indexing.error !== null && indexing.error !== undefined && (
        <div className={css["problem"]} role="alert">
          <p>Indexing stopped after {count(indexing.rows)} rows: {indexing.error.message}</p>
          <Button label="Open it again" onClick={reopen} />
        </div>
      )}
      <Button label="Open other rollouts, or more of them" hotkey="o" keyGroup="Sources" kind="quiet" className={css["open"]} onClick={() => setIsOpening(true)}>
        Open other…
      </Button>
      {isOpening && <OpenPanel start={start} onClose={() => setIsOpening(false)} />}
    </section>
  );
}

/** A file's folder is where its neighbours are; a folder's is where other runs are. */
function folderOf(place: string): string | null {
  const folder = place.replace(/\/+$/, "").replace(/\/[^/]*$/, "");
  return /[*?[{]/.test(folder) || folder === "" || folder.endsWith(":/") ? null : folder;
}

function Progress({ done, of, waiting }: { done: number; of: number; waiting: boolean }) {
  const share = of > 0 ? (100 * done) / of : 0;
  return (
    <div className={css["progress"]}>
      <div role="progressbar" aria-label="Indexing" aria-valuenow={Math.round(share)} aria-valuemin={0} aria-valuemax={100} className={css["track"]}>
        <div style={{ width: `${share}%` }} />
      </div>
      <p>{waiting ? "Another process indexes this place and is waited for" : `Indexing: ${bytes(done)} of ${bytes(of)}`}</p>
    </div>
  );
}
