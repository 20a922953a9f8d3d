import { useEffect, useState, type ReactNode, type RefObject } from "react";
import { Button } from "@/parts/Button";
import type { Message } from "./parts";
import type { Span } from "./places";
import { selectedIn, type Selected } from "./selection";
import css from "./SelectionBar.module.css";

export type { Selected } from "./selection";

interface Props {
  within: RefObject<HTMLElement | null>;
  messages: readonly Message[];
  linkTo?: ((span: Span) => string) | undefined;
  actions?: ((selection: Selected) => ReactNode) | undefined;
}

interface Shown {
  selected: Selected;
  top: number;
  left: number;
}

/** What can be done with selected text, beside it. */
export function SelectionBar({ within, messages, linkTo, actions }: Props) {
  const [shown, setShown] = useState<Shown | null>(null);
  const [copied, setCopied] = useState<Selected | null>(null);
  useEffect(() => {
    let frame = 0;
    const look = () => {
      const element = within.current;
      // A field of the bar itself takes the focus, and with it the selection: it must not close what it is in.
      if (document.activeElement?.closest("[data-selection-bar]")) return;
      const selected = element && selectedIn(element, messages);
      const box = selected && document.getSelection()?.getRangeAt(0).getBoundingClientRect();
      const bounds = element?.getBoundingClientRect();
      if (!selected || !box || !bounds) {
        setShown(null);
        return;
      }
      const top = Math.min(Math.max(box.top - 36, bounds.top + 4), bounds.bottom - 36);
      setShown({ selected, top, left: Math.min(Math.max(box.left, bounds.left + 8), bounds.right - 200) });
    };
    const soon = () => {
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(look);
    };
    const element = within.current;
    document.addEventListener("selectionchange", soon);
    element?.addEventListener("scroll", soon, { passive: true });
    return () => {
      cancelAnimationFrame(frame);
      document.removeEventListener("selectionchange", soon);
      element?.removeEventListener("scroll", soon);
    };
  }, [within, messages]);
  if (!shown || (!linkTo && !actions)) return null;
  const { selected, top, left } = shown;
  const isCopied = copied?.message === selected.message && copied.start === selected.start && copied.end === selected.end;
  return (
    <div className={css["bar"]} role="toolbar" aria-label="Selected text" data-selection-bar="" style={{ top: `${top}px`, left: `${left}px` }}>
      {linkTo && (
        <Button
          label="Copy a link to this text"
          hotkey="Shift+Y"
          keyGroup="Chat"
          kind="quiet"
          onClick={() => void navigator.clipboard.writeText(linkTo(selected)).then(() => setCopied(selected))}
        >
          {isCopied ? "Link copied" : "Copy link"}
        </Button>
      )}
      {actions?.(selected)}
    </div>
  );
}
