/** What is on screen as a command for a shell. */

function shellQuoted(text: string): string {
  return /^[\w./:@%+,=-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Null for runs of the server: only it can read them. */
export function commandFor(places: string[], filter: string): string | null {
  if (places.length === 0 || places.some((place) => place.startsWith("yard://"))) return null;
  const words = ["rollyard", "convert", ...places.map(shellQuoted), "rows.jsonl"];
  if (filter !== "") words.push("--filter", shellQuoted(filter));
  return words.join(" ");
}
