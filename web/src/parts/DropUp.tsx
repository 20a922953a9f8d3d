import { useEffect, useRef, useState, type ReactNode } from "react";
import { useKey } from "@/keys/keys";
import { Button } from "./Button";
import css from "./DropUp.module.css";

interface Props {
  label: string;
  hotkey: string;
  keyGroup: string;
  /** On the button. */
  name: ReactNode;
  disabled?: boolean;
  children: ReactNode;
}

/** A button of a line at the bottom, and what opens over it. Escape and a click elsewhere close it. */
export function DropUp({ label, hotkey, keyGroup, name, disabled = false, children }: Props) {
  const [isOpen, setOpen] = useState(false);
  const around = useRef<HTMLDivElement>(null);
  const close = () => {
    setOpen(false);
    around.current?.querySelector("button")?.focus();
  };
  // Also when what had the focus is gone from it.
  useKey(isOpen ? { keys: "Escape", label: "Close", group: "General", run: close, inFields: true } : null);
  useEffect(() => {
    if (!isOpen) return;
    around.current?.querySelector<HTMLElement>("[data-first], [role=dialog] input, [role=dialog] a, [role=dialog] button")?.focus();
    const onPointer = (event: PointerEvent) => {
      if (event.target instanceof Node && !around.current?.contains(event.target)) setOpen(false);
    };
    window.addEventListener("pointerdown", onPointer);
    return () => window.removeEventListener("pointerdown", onPointer);
  }, [isOpen]);
  return (
    <div className={css["around"]} ref={around}>
      <Button label={label} hotkey={hotkey} keyGroup={keyGroup} kind="quiet" pressed={isOpen} disabled={disabled} onClick={() => setOpen(!isOpen)}>
        {name}
      </Button>
      {isOpen && (
        <div
          role="dialog"
          aria-label={label}
          className={css["open"]}
          onKeyDown={(event) => {
            if (event.key === "Escape") close();
            // Keys of the page are not meant while something is open over it.
            event.stopPropagation();
          }}
        >
          {children}
        </div>
      )}
    </div>
  );
}
