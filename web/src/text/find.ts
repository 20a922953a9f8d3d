/** Where a text stands in another: in the data, not in what happens to be on screen. */

export interface Found {
  from: number;
  to: number;
}

/** At most `limit` places, in order, none over another. */
export function findAll(text: string, wanted: string, options: { case: boolean; limit: number }): Found[] {
  if (wanted === "") return [];
  // Not lower case against lower case: that may change the length, and then all that follows is off.
  const pattern = new RegExp(wanted.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"), options.case ? "gu" : "giu");
  const found: Found[] = [];
  for (const match of text.matchAll(pattern)) {
    if (found.length >= options.limit) break;
    found.push({ from: match.index, to: match.index + match[0].length });
  }
  return found;
}
