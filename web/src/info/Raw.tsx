import { useState } from "react";
import { errorOf, fetchOrTell } from "@/api/client";
import { useAsk, useView } from "@/api/view";
import { Button } from "@/parts/Button";
import { ErrorNotice } from "@/parts/Notice";
import { bytes } from "@/parts/numbers";
import { visibleText } from "@/tokens/visible";
import css from "./Info.module.css";

const SHOWN = 100_000;

/** The bytes of the row as they stand in the file; those that are no text show as replacement characters. */
export function Raw({ id, length }: { id: string; length: number }) {
  const { key } = useView();
  const [open, setOpen] = useState(false);
  const url = `/api/view/${encodeURIComponent(key)}/rollouts/${id}/raw`;
  const raw = useAsk(
    ["raw", id],
    async () => {
      const response = await fetchOrTell(url);
      if (!response.ok) throw errorOf(response.status, await response.json().catch(() => undefined));
      return { id, text: (await response.text()).slice(0, SHOWN) };
    },
    { enabled: open, live: false },
  );
  return (
    <section aria-label="Raw bytes">
      <h2 className={css["title"]}>
        Raw bytes <span>{bytes(length)}</span>
        <span className={css["acts"]}>
          <Button label={open ? "Hide the raw bytes" : "Show the raw bytes"} pressed={open} onClick={() => setOpen(!open)}>
            {open ? "Hide" : "Show"}
          </Button>
          <a href={url} target="_blank" rel="noreferrer" download={`${id}.json`}>
            Download
          </a>
        </span>
      </h2>
      {open && raw.error && <ErrorNotice error={raw.error} title="The bytes could not be read" />}
      {open && raw.data?.id === id && (
        <>
          <pre className={css["raw"]} tabIndex={0} aria-label="Raw bytes as text">
            {visibleText(raw.data.text)}
          </pre>
          {length > SHOWN && <p className={css["note"]}>These are the first {bytes(SHOWN)}; the download has all.</p>}
        </>
      )}
    </section>
  );
}
