import { useState } from "react";
import { count, counted } from "@/parts/numbers";
import css from "./Info.module.css";

/** Members that are drawn at once: some rows have lists with a value for each token. */
const CHUNK = 100;
const TEXT_SHOWN = 2_000;

function summaryOf(value: object): string {
  return Array.isArray(value) ? `[ ${counted(value.length, "value")} ]` : `{ ${counted(Object.keys(value).length, "field")} }`;
}

/** JSON that opens where it is looked into. */
export function Tree({ name, value }: { name: string; value: unknown }) {
  const [open, setOpen] = useState(false);
  if (typeof value !== "object" || value === null) {
    return (
      <p className={css["leaf"]}>
        <span className={css["key"]}>{name}</span> <Leaf value={value} />
      </p>
    );
  }
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <span className={css["key"]}>{name}</span> <span className={css["muted"]}>{summaryOf(value)}</span>
      </summary>
      {open && <Members value={value} />}
    </details>
  );
}

function Members({ value }: { value: object }) {
  const [shown, setShown] = useState(CHUNK);
  const members = Object.entries(value) as [string, unknown][];
  return (
    <div className={css["members"]}>
      {members.slice(0, shown).map(([name, member]) => (
        <Tree key={name} name={name} value={member} />
      ))}
      {members.length > shown && (
        <button type="button" className={css["more"]} onClick={() => setShown(shown + 10 * CHUNK)}>
          {count(members.length - shown)} more
        </button>
      )}
    </div>
  );
}

function Leaf({ value }: { value: unknown }) {
  const [open, setOpen] = useState(false);
  const text = JSON.stringify(value) as string | undefined;
  if (text === undefined) return <bdi>–</bdi>;
  if (open || text.length <= TEXT_SHOWN) return <bdi>{text}</bdi>;
  return (
    <>
      <bdi>{text.slice(0, TEXT_SHOWN)}</bdi>{" "}
      <button type="button" className={css["more"]} onClick={() => setOpen(true)}>
        {count(text.length - TEXT_SHOWN)} more characters
      </button>
    </>
  );
}
