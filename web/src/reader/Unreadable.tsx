import { errorOf, fetchOrTell } from "@/api/client";
import { useAsk } from "@/api/view";
import { ErrorNotice } from "@/parts/Notice";
import { bytes } from "@/parts/numbers";
import type { Rollout } from "./useRollout";
import css from "./Unreadable.module.css";

/** More than this of a broken row says no more. */
const SHOWN_BYTES = 200_000;

/** A row that is no rollout: what is wrong with it, and what stands there. */
export function Unreadable({ rollout }: { rollout: Rollout }) {
  const raw = useAsk(["raw-text", rollout.id], (view) => readRaw(view, rollout.id), { live: false });
  return (
    <section className={css["unreadable"]} aria-label="Raw row">
      <p role="alert" className={css["why"]}>
        <strong>This row cannot be read.</strong> {rollout.problem}. Its bytes stand below as they are in the file; mend them there, and
        the row is read again.
      </p>
      {raw.error && <ErrorNotice error={raw.error} title="Its bytes could not be read either" />}
      {raw.data && (
        <pre className={css["raw"]} tabIndex={0}>
          {raw.data.text}
        </pre>
      )}
      {raw.data && raw.data.size > SHOWN_BYTES && (
        <p className={css["rest"]}>
          The first {bytes(SHOWN_BYTES)} of {bytes(raw.data.size)}.
        </p>
      )}
    </section>
  );
}

async function readRaw(view: string, id: string): Promise<{ text: string; size: number }> {
  const response = await fetchOrTell(`/api/view/${view}/rollouts/${id}/raw`);
  if (!response.ok) throw errorOf(response.status, await response.json().catch(() => undefined));
  const all = await response.arrayBuffer();
  return { text: visible(new TextDecoder().decode(all.slice(0, SHOWN_BYTES))), size: all.byteLength };
}

/** Bytes that cannot be seen, or that turn the text around, as pictures of themselves. */
function visible(text: string): string {
  return text
    .replaceAll(/[\u0000-\u0008\u000b-\u001f]/g, (sign) => String.fromCharCode(0x2400 + sign.charCodeAt(0)))
    .replaceAll(/[\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
