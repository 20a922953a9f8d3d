import type { ReactNode } from "react";
import { useKey } from "@/keys/keys";
import css from "./Button.module.css";

interface Props {
  /** What it does; the tooltip, and the name for those who cannot see it. */
  label: string;
  onClick: () => void;
  /** Shown in the tooltip, and listened to. */
  hotkey?: string | undefined;
  /** Heading of its key in the help. */
  keyGroup?: string;
  children?: ReactNode;
  pressed?: boolean;
  disabled?: boolean;
  kind?: "plain" | "primary" | "quiet";
  className?: string | undefined;
}

/** Who speaks to the page says what stands on the button: its name begins with that. */
function nameOf(label: string, children: ReactNode): string {
  const words = [children].flat().filter((child) => typeof child === "string" || typeof child === "number").join("").trim();
  const isShown = !/[\p{L}\p{N}]/u.test(words) || ` ${label} `.toLowerCase().includes(` ${words} `.toLowerCase());
  return isShown ? label : `${words}: ${label}`;
}

/** A button whose key is in its tooltip and in the help. */
export function Button(props: Props) {
  const { label, onClick, hotkey, keyGroup = "General", children, pressed, disabled = false, kind = "plain" } = props;
  useKey(hotkey !== undefined && !disabled ? { keys: hotkey, label, group: keyGroup, run: onClick } : null);
  return (
    <button
      type="button"
      className={[css["button"], css[kind], props.className].filter(Boolean).join(" ")}
      title={hotkey === undefined ? label : `${label} (${hotkey})`}
      aria-label={nameOf(label, children)}
      aria-pressed={pressed}
      aria-keyshortcuts={hotkey}
      disabled={disabled}
      onClick={onClick}
    >
      {children ?? label}
    </button>
  );
}
