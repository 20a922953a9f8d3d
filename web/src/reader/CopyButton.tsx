import { useEffect, useState, type ReactNode } from "react";
import { Button } from "@/parts/Button";
import { copyText } from "./copy";

interface Props {
  label: string;
  /** Asked for when it is copied. */
  text: () => string;
  hotkey?: string;
  className?: string | undefined;
  children: ReactNode;
}

/** Copies a text, and says whether it did. */
export function CopyButton({ label, text, hotkey, className, children }: Props) {
  const [said, setSaid] = useState<string | null>(null);
  useEffect(() => {
    if (said === null) return;
    const timer = setTimeout(() => setSaid(null), 1500);
    return () => clearTimeout(timer);
  }, [said]);
  const copy = async () => {
    const wanted = text();
    if (await copyText(wanted)) setSaid("Copied");
    // Then at least it can be copied by hand.
    else window.prompt("This browser keeps the clipboard from pages without HTTPS. Copy it here:", wanted);
  };
  return (
    <>
      <Button label={label} hotkey={hotkey} keyGroup="Reader" kind="quiet" className={className} onClick={() => void copy()}>
        {said ?? children}
      </Button>
      <span className="visually-hidden" role="status">
        {said}
      </span>
    </>
  );
}
