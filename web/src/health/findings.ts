/** What is wrong with the rows, as sentences, each with the way to the rows behind it. */

import type { Schema } from "@/api/client";
import { count, counted } from "@/parts/numbers";

export interface Finding {
  n: number;
  name: string;
  text: string;
  /** A clause that shows them, a list that is looked at, or neither. */
  clause?: string;
  list?: "problems" | "copies" | "unread";
  /** Rows or files that are lost to the reader, rather than odd. */
  isLoss?: boolean;
}

export function findings(health: Schema["HealthAnswer"], columns: string[]): Finding[] {
  const of = (n: number) => `${count(n)} of ${counted(health.rows, "row")}`;
  const all: Finding[] = [
    { n: health.bad_rows, name: "bad_rows", text: `${of(health.bad_rows)} could not be read`, list: "problems", isLoss: true },
    { n: health.unread_files.length, name: "unread", text: `${counted(health.unread_files.length, "file")} could not be read`, list: "unread", isLoss: true },
    { n: health.unclosed, name: "unclosed", text: `${count(health.unclosed)} with an unclosed <think>`, clause: "unclosed == true" },
    { n: health.truncated, name: "truncated", text: `${count(health.truncated)} cut off at a limit`, clause: "truncated == true" },
    { n: health.odd, name: "odd", text: `${count(health.odd)} with odd values, such as NaN`, clause: "odd == true" },
    { n: health.copies, name: "copies", text: `${counted(health.copies, "copy", "copies")} of other rows`, list: "copies" },
    {
      n: health.dead_groups,
      name: "dead_groups",
      text: `${count(health.dead_groups)} of ${counted(health.groups, "group")} are dead`,
      // Only where the catalog has a column for it.
      ...(columns.includes("dead_group") ? { clause: "dead_group == true" } : {}),
    },
    { n: health.half_written, name: "half_written", text: `${counted(health.half_written, "file")} still being written` },
  ];
  return all.filter((finding) => finding.n > 0);
}
