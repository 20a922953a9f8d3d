import { Button } from "@/parts/Button";
import { counted } from "@/parts/numbers";
import { useViewState } from "@/state/location";
import type { Tail } from "./useTail";
import css from "./Follow.module.css";

interface Props {
  tail: Tail;
  isPaused: boolean;
  /** The user reads further down. */
  isAway: boolean;
  onPause: (isPaused: boolean) => void;
}

/** Turns following on and off, and says how it goes. */
export function Follow({ tail, isPaused, isAway, onPause }: Props) {
  const [{ follow }, set] = useViewState();
  const isHeld = isPaused || isAway;
  const state = tail.state === "live" ? (isHeld ? "paused" : "live") : tail.state;
  const words = {
    off: tail.error?.message ?? "not following",
    connecting: "connecting",
    away: "the server is away; it is asked again until it answers",
    live: tail.error?.message ?? "new rows are shown as they come",
    paused: isPaused ? "paused; new rows are counted" : "paused while you read further down; new rows are counted",
  }[state];
  return (
    <span className={css["follow"]}>
      <Button label={follow ? `Stop following: ${words}` : "Follow new rows"} hotkey="Shift+F" keyGroup="Rows" kind="quiet" pressed={follow} onClick={() => set({ follow: !follow }, "replace")}>
        <span className={css["dot"]} data-state={follow ? state : "off"} />
        {follow ? (state === "off" ? "Stopped" : state === "away" ? "Away" : state === "paused" ? "Paused" : "Live") : "Follow"}
      </Button>
      {follow && (
        <Button label={isPaused ? "Go on showing new rows" : "Pause; new rows are counted"} hotkey="Shift+H" keyGroup="Rows" kind="quiet" pressed={isPaused} onClick={() => onPause(!isPaused)}>
          {isPaused ? "Go on" : "Pause"}
        </Button>
      )}
      <span className="visually-hidden" role="status">
        {follow ? words : ""}
      </span>
    </span>
  );
}

/** Stands over the rows while there are new ones that are not shown. */
export function Waiting({ count, onTake }: { count: number; onTake: () => void }) {
  if (count === 0) return null;
  return (
    <div className={css["waiting"]}>
      <Button label={`Show ${counted(count, "new row")}`} hotkey="u" keyGroup="Rows" kind="primary" onClick={onTake}>
        ↑ {counted(count, "new row")}
      </Button>
    </div>
  );
}
