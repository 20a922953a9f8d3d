import { useState } from "react";
import { useView } from "@/api/view";
import { Button } from "@/parts/Button";
import { DropUp } from "@/parts/DropUp";
import { count, counted } from "@/parts/numbers";
import { commandFor, exportUrl, filterOfIds, type Format } from "./command";
import css from "./ExportMenu.module.css";

interface Props {
  selected: ReadonlySet<string>;
  /** Of the filter that is shown. */
  total: number;
  filter: string;
  sort: string;
  /** As the server knows them. */
  columns: string[];
}

const FORMATS: { format: Format; name: string; about: string }[] = [
  { format: "jsonl", name: "JSONL", about: "the rollouts as they stand in their files" },
  { format: "csv", name: "CSV", about: "the columns that are shown" },
  { format: "parquet", name: "Parquet", about: "the rollouts in the archive's schema, up to 512 MB" },
  { format: "html", name: "HTML", about: "one page that shows them without a server" },
];

/** All of a page is in memory at once. */
const HTML_ROWS_MAX = 2_000;

/** Rows to take along, as a file or as the command that makes it. */
export function ExportMenu(props: Props) {
  return (
    <DropUp label="Export rows" hotkey="e" keyGroup="Rows" name="Export" disabled={props.total === 0}>
      <Menu {...props} />
    </DropUp>
  );
}

function Menu({ selected, total, filter, sort, columns }: Props) {
  const { key, answer } = useView();
  const [onlySelected, setOnlySelected] = useState(selected.size > 0);
  const [format, setFormat] = useState<Format>("jsonl");
  const isSelected = onlySelected && selected.size > 0;
  const wanted = isSelected ? filterOfIds(selected) : filter;
  const command = commandFor({ places: answer.places, filter: wanted, columns, format });
  const many = isSelected ? selected.size : total;
  const isTooMany = format === "html" && many > HTML_ROWS_MAX;
  return (
    <div className={css["menu"]}>
      <fieldset className={css["which"]}>
        <legend className={css["legend"]}>Rows</legend>
        <label className={css["choice"]}>
          <input type="radio" name="rows" checked={!isSelected} onChange={() => setOnlySelected(false)} />
          {filter === "" ? "all" : "all of the filter"} <span className={css["about"]}>{counted(total, "row")}</span>
        </label>
        <label className={css["choice"]}>
          <input type="radio" name="rows" checked={isSelected} disabled={selected.size === 0} onChange={() => setOnlySelected(true)} />
          marked <span className={css["about"]}>{selected.size === 0 ? "none; x marks a row" : counted(selected.size, "row")}</span>
        </label>
      </fieldset>
      <fieldset className={css["which"]}>
        <legend className={css["legend"]}>Format</legend>
        {FORMATS.map((one) => (
          <label key={one.format} className={css["choice"]}>
            <input type="radio" name="format" checked={one.format === format} onChange={() => setFormat(one.format)} />
            {one.name} <span className={css["about"]}>{one.about}</span>
          </label>
        ))}
      </fieldset>
      {isTooMany ? (
        <p className={css["about"]}>One page holds at most {count(HTML_ROWS_MAX)} rows; narrow the filter, or mark some.</p>
      ) : (
      <a className={css["download"]} href={exportUrl(key, { filter: wanted, sort, columns, format })} download>
        Download {counted(many, "row")} as {FORMATS.find((one) => one.format === format)?.name}
      </a>
      )}
      {command !== null && <Command text={command} />}
    </div>
  );
}

function Command({ text }: { text: string }) {
  const [copied, setCopied] = useState<string | null>(null);
  const copy = () => {
    navigator.clipboard.writeText(text).then(
      () => setCopied(text),
      () => setCopied(null),
    );
  };
  return (
    <div className={css["command"]}>
      <p className={css["legend"]}>The same on the command line</p>
      <code className={css["code"]}>{text}</code>
      <Button label="Copy the command" onClick={copy}>
        {copied === text ? "Copied" : "Copy"}
      </Button>
    </div>
  );
}
