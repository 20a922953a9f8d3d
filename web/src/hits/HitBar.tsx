import { useKey } from "@/keys/keys";
import { Button } from "@/parts/Button";
import { count } from "@/parts/numbers";
import { useViewState } from "@/state/location";
import { useHits } from "./useHits";
import { useHitWalk } from "./useHitWalk";
import css from "./HitBar.module.css";

/** Where the reader is among the hits, and the way to the next one. There while something is searched for. */
export function HitBar() {
  const [{ search, rollout }] = useViewState();
  const { hits } = useHits();
  const { at, places, here, next, previous } = useHitWalk();
  const isOn = search.length > 0 && hits.length > 0;
  useKey(isOn && rollout === null ? { keys: "Shift+N", label: "Next hit", group: "Search", run: next } : null);
  if (!isOn || rollout === null) return null;
  const isFirst = at === 0 && here <= 0;
  const isLast = at === hits.length - 1 && here === places.length - 1;
  return (
    <div className={css["bar"]} role="group" aria-label="Hits of the search">
      <span className={css["where"]}>
        {at < 0 ? (
          "The search has no hit in this rollout"
        ) : (
          <>
            {places.length > 0 && `Hit ${here < 0 ? "–" : count(here + 1)} of ${count(places.length)} here, `}
            {`rollout ${count(at + 1)} of ${count(hits.length)}`}
          </>
        )}
      </span>
      <Nav label="Previous hit" keys="Shift+P" sign="↑" onClick={previous} disabled={isFirst} />
      <Nav label="Next hit" keys="Shift+N" sign="↓" onClick={next} disabled={isLast} />
    </div>
  );
}

function Nav({ label, keys, sign, onClick, disabled }: { label: string; keys: string; sign: string; onClick: () => void; disabled: boolean }) {
  return (
    <Button label={label} hotkey={keys} keyGroup="Search" kind="quiet" disabled={disabled} onClick={onClick}>
      {sign}
    </Button>
  );
}
