import { Button } from "@/parts/Button";
import { count, counted } from "@/parts/numbers";
import css from "./Diff.module.css";

interface Props {
  at: number;
  changes: number;
  sameStart: number;
  inline: boolean;
  onAt: (at: number) => void;
  onInline: (inline: boolean) => void;
  onSwap: () => void;
}

export function DiffBar({ at, changes, sameStart, inline, onAt, onInline, onSwap }: Props) {
  return (
    <div className={css["bar"]}>
      <p aria-live="polite">
        Difference {count(at + 1)} of {count(changes)}
        <span className={css["muted"]}>, the first after {counted(sameStart, "equal character")}</span>
      </p>
      <div className={css["buttons"]}>
        <Button label="First difference" hotkey="Home" keyGroup="Diff" onClick={() => onAt(0)}>
          First
        </Button>
        <Button label="Previous difference" hotkey="," keyGroup="Diff" disabled={at === 0} onClick={() => onAt(at - 1)}>
          ‹
        </Button>
        <Button label="Next difference" hotkey="." keyGroup="Diff" disabled={at >= changes - 1} onClick={() => onAt(at + 1)}>
          ›
        </Button>
        <Button label={inline ? "Show side by side" : "Show in one column"} hotkey="v" keyGroup="Diff" pressed={inline} onClick={() => onInline(!inline)}>
          One column
        </Button>
        <Button label="Swap the two" hotkey="Shift+V" keyGroup="Diff" onClick={onSwap}>
          Swap
        </Button>
      </div>
    </div>
  );
}
