import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef } from "react";
import { useKey } from "@/keys/keys";
import { Button } from "@/parts/Button";
import { ErrorNotice, Notice } from "@/parts/Notice";
import { bytes, count, counted } from "@/parts/numbers";
import { useViewState } from "@/state/location";
import { blamed, mistakeIn } from "./conditions";
import { HitRow } from "./HitRow";
import { useHits, type Search } from "./useHits";
import { useHitWalk } from "./useHitWalk";
import css from "./Hits.module.css";

const ROW = 28;

/** Rollouts that have what was searched for, as they are found. */
export function Hits() {
  const [{ search }] = useViewState();
  const running = useHits();
  const { hits, state, error } = running;
  const mistake = mistakeIn(search);
  if (search.length === 0) return <Notice title="Nothing is searched for yet">Press / and type what to look for in the text of all rollouts.</Notice>;
  if (mistake !== null) return <Notice title="This search cannot be made">{mistake}</Notice>;
  return (
    <section className={css["hits"]} aria-label="Hits">
      <Progress search={running} onStop={running.stop} onAgain={running.again} />
      {error && hits.length > 0 && blamed(error, search) === null && (
        <p className={css["error"]} role="alert">
          {error.message}
        </p>
      )}
      {hits.length > 0 ? <List /> : state === "failed" && error ? <Refused error={error} /> : state === "done" && <Nothing />}
    </section>
  );
}

function Refused({ error }: { error: Error }) {
  const [{ search }] = useViewState();
  if (blamed(error, search) !== null) return <Notice title="The regular expression cannot be read">What is wrong with it stands at its field, on the left.</Notice>;
  return <ErrorNotice error={error} title="The search did not go through" />;
}

function Nothing() {
  const [{ q, clauses }, set] = useViewState();
  const isNarrow = q !== "" || clauses.length > 0;
  return (
    <Notice title="No rollout has this">
      {isNarrow ? "Only rows that the filter lets through were searched." : "Every rollout was searched."}
      {isNarrow && <Button label="Search all rollouts, without the filter" onClick={() => set({ q: "", clauses: [] })} />}
    </Notice>
  );
}

function Progress({ search, onStop, onAgain }: { search: Search; onStop: () => void; onAgain: () => void }) {
  const { hits, scanned, state, secs } = search;
  const isRunning = state === "running";
  const all = hits.reduce((sum, hit) => sum + hit.count, 0);
  const share = scanned && scanned.rows > 0 ? scanned.rows_done / scanned.rows : 0;
  return (
    <div className={css["head"]}>
      <p className={css["found"]} role="status">
        <strong>{counted(hits.length, "rollout")}</strong>
        {all > hits.length && ` · ${counted(all, "hit")}`}
        {scanned && (
          <span className={css["scanned"]}>
            {` · ${count(scanned.rows_done)} of ${count(scanned.rows)} scanned`}
            {secs > 0 && scanned.bytes_done > 0 && `, ${bytes(scanned.bytes_done / secs)}/s`}
            {scanned.more && ". There are more: narrow the filter to see them"}
            {state === "stopped" && ". Stopped"}
          </span>
        )}
      </p>
      {isRunning ? (
        <Button label="Stop the search" hotkey="Escape" keyGroup="Search" onClick={onStop}>
          Stop
        </Button>
      ) : (
        <Button label="Search again" kind="quiet" onClick={onAgain}>
          Again
        </Button>
      )}
      {isRunning && <progress className={css["bar"]} aria-label="Scanned" value={share} max={1} />}
    </div>
  );
}

function List() {
  const { hits } = useHits();
  const { at, open, skip } = useHitWalk();
  const scroller = useRef<HTMLDivElement>(null);
  // The library's functions cannot be memoised, which is what the rule is about; nothing here relies on it.
  // eslint-disable-next-line react-hooks/incompatible-library
  const rows = useVirtualizer({ count: hits.length, getScrollElement: () => scroller.current, estimateSize: () => ROW, overscan: 12 });
  useKey({ keys: "j", label: "Next rollout with a hit", group: "Search", run: () => skip(1) });
  useKey({ keys: "k", label: "Previous rollout with a hit", group: "Search", run: () => skip(-1) });
  useEffect(() => {
    if (at >= 0) rows.scrollToIndex(at, { align: "auto" });
    // Only when another one is chosen: new hits must not move the list.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [at]);
  return (
    <div
      ref={scroller}
      className={css["list"]}
      role="listbox"
      aria-label="Rollouts with hits"
      tabIndex={0}
      aria-activedescendant={at >= 0 ? `hit-${at}` : undefined}
      onKeyDown={(event) => {
        if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
        event.preventDefault();
        skip(event.key === "ArrowDown" ? 1 : -1);
      }}
    >
      <div role="presentation" style={{ height: rows.getTotalSize(), position: "relative" }}>
        {rows.getVirtualItems().map(({ index, start }) => {
          const hit = hits[index];
          return hit && <HitRow key={hit.id} hit={hit} index={index} total={hits.length} top={start} isChosen={index === at} onOpen={open} />;
        })}
      </div>
    </div>
  );
}
