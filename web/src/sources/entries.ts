/** The lines of the file browser, in the order that was asked for. */

import type { Listing } from "./useBrowse";

export interface Entry {
  place: string;
  kind: "folder" | "file";
  size: number | null;
  /** Milliseconds since 1970. */
  time: number | null;
}

export type Order = "name" | "size" | "time";

const collator = new Intl.Collator("en", { numeric: true });

/** Folders first, then files; the largest and the newest first, names from A. */
export function entries(listing: Listing, order: Order, marked: string[]): Entry[] {
  const folders = listing.folders.map((place): Entry => ({ place, kind: "folder", size: null, time: null }));
  const files = listing.files.map((file): Entry => ({ place: file.file, kind: "file", size: file.size_bytes, time: file.modified_ms }));
  const byName = (a: Entry, b: Entry) => collator.compare(a.place, b.place);
  const stars = new Set(marked);
  const star = (entry: Entry) => (stars.has(entry.place) ? 0 : 1);
  const by = {
    name: byName,
    size: (a: Entry, b: Entry) => (b.size ?? 0) - (a.size ?? 0) || byName(a, b),
    time: (a: Entry, b: Entry) => (b.time ?? 0) - (a.time ?? 0) || byName(a, b),
  }[order];
  const sorted = (list: Entry[]) => list.sort((a, b) => star(a) - star(b) || by(a, b));
  return [...sorted(folders), ...sorted(files)];
}
