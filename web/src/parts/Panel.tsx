import { useEffect, useRef, type ReactNode } from "react";
import { Button } from "./Button";
import css from "./Panel.module.css";

interface Props {
  title: string;
  onClose: () => void;
  children: ReactNode;
}

/** Something that is looked at and closed again: keys, the file browser. One at a time, never one in another. */
export function Panel({ title, onClose, children }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const element = dialog.current;
    element?.showModal();
    return () => element?.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      className={css["panel"]}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onKeyDown={(event) => event.stopPropagation()}
      onClick={(event) => {
        if (event.target === dialog.current) onClose();
      }}
    >
      <header className={css["head"]}>
        <h2>{title}</h2>
        <Button label="Close" kind="quiet" onClick={onClose}>
          ✕
        </Button>
      </header>
      <div className={css["body"]}>{children}</div>
    </dialog>
  );
}
