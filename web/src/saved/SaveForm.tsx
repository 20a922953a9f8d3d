import { useEffect, useRef, useState } from "react";
import css from "./SavedViews.module.css";

interface Props {
  /** Names that there are: saving under one of them puts this in its place. */
  taken: string[];
  error: Error | null;
  isSaving: boolean;
  onSave: (name: string) => void;
  onCancel: () => void;
}

export function SaveForm({ taken, error, isSaving, onSave, onCancel }: Props) {
  const [name, setName] = useState("");
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  const wanted = name.trim();
  const isTaken = taken.includes(wanted);
  return (
    <form
      className={css["form"]}
      onSubmit={(event) => {
        event.preventDefault();
        if (wanted !== "" && !isSaving) onSave(wanted);
      }}
    >
      <input
        ref={field}
        aria-label="Name of the view"
        placeholder="A name, then Enter"
        value={name}
        onChange={(event) => setName(event.target.value)}
        onKeyDown={(event) => event.key === "Escape" && onCancel()}
      />
      <button type="submit" disabled={wanted === "" || isSaving}>
        {isTaken ? "Replace" : "Save"}
      </button>
      {error && (
        <p role="alert" className={css["wrong"]}>
          {error.message}
        </p>
      )}
    </form>
  );
}
