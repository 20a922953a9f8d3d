/** The command that gives the same rows without the viewer. */

export type Format = "jsonl" | "csv" | "parquet" | "html";

/** What may stand in a shell without quotes. */
const PLAIN = /^[\w@%+=:,./-]+$/;

export function shellQuoted(text: string): string {
  return PLAIN.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

interface Asked {
  places: string[];
  filter: string;
  columns: string[];
  format: Format;
}

/** Null where only the server can do it: the archive of a run of its own, or a page. */
export function commandFor({ places, filter, columns, format }: Asked): string | null {
  if (format === "html" || places.some((place) => place.startsWith("yard://"))) return null;
  const paths = places.map(shellQuoted).join(" ");
  const convert = (out: string) => `rollyard convert ${paths} ${out}${filter === "" ? "" : ` --filter ${shellQuoted(filter)}`} --unique`;
  if (format !== "csv") return convert(`rollouts.${format}`);
  // SQL knows nothing of the filter language, so a filtered table is made in two steps.
  const names = columns.map((name) => (name.includes(".") ? `json_extract(extra, '$.${JSON.stringify(name)}') as ${JSON.stringify(name)}` : name));
  const select = (from: string) => `rollyard query ${shellQuoted(`select ${names.join(", ")} from rollouts`)} ${from} --out rollouts.csv`;
  return filter === "" ? select(paths) : `${convert("rollouts.jsonl")} && ${select("rollouts.jsonl")}`;
}

export function exportUrl(view: string, asked: { filter: string; sort: string; columns: string[]; format: Format }): string {
  const params = new URLSearchParams({ format: asked.format });
  if (asked.filter !== "") params.set("filter", asked.filter);
  if (asked.sort !== "") params.set("sort", asked.sort);
  if (asked.format === "csv") params.set("columns", asked.columns.join());
  return `/api/view/${view}/export?${params}`;
}

/** The filter for rows that were marked one by one. */
export function filterOfIds(ids: Iterable<string>): string {
  return `id in (${[...ids].map((id) => `"${id}"`).join(", ")})`;
}
