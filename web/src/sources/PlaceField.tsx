import { useState } from "react";
import css from "./PlaceField.module.css";

/** Any place by its name, for those who know it. */
export function PlaceField({ onOpen, verb = "Open" }: { onOpen: (place: string) => void; verb?: string }) {
  const [place, setPlace] = useState("");
  return (
    <form
      className={css["form"]}
      onSubmit={(event) => {
        event.preventDefault();
        if (place.trim() !== "") onOpen(place.trim());
      }}
    >
      <input aria-label="A file, folder, glob or bucket" placeholder="/data/run1/*.jsonl or s3://bucket/run1" spellCheck={false} value={place} onChange={(event) => setPlace(event.target.value)} />
      <button type="submit" disabled={place.trim() === ""}>
        {verb}
      </button>
    </form>
  );
}
