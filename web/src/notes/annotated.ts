/** Which rollouts have something said of them, by what was said. */

import { api, ask } from "@/api/client";
import { quoted } from "@/state/url";
import { isByModel, type Note } from "./notes";

export interface Heap {
  kind: "verdict" | "tag" | "comment" | "grade";
  /** Of a verdict, tag or metric. */
  name: string;
  ids: string[];
}

/** As many as one filter takes, and as one answer has. */
const IDS_MAX = 1000;

export async function annotated(): Promise<Heap[]> {
  const kinds = ["verdict", "tag", "comment", "grade"] as const;
  const answers = await Promise.all(
    kinds.map((kind) => ask(api.GET("/api/view/annotations", { params: { query: { kind, limit: IDS_MAX } } }))),
  );
  return heaps(answers.flatMap(({ annotations }) => annotations as unknown as Note[]));
}

/** The newest note comes first: of two verdicts of one person the first counts. */
export function heaps(notes: Note[]): Heap[] {
  const found = new Map<string, Heap>();
  const settled = new Set<string>();
  for (const note of notes) {
    const { kind, id, by = "" } = note;
    if (kind === "verdict") {
      if (settled.has(`${id} ${by}`)) continue;
      settled.add(`${id} ${by}`);
    }
    if (kind === "grade" && !isByModel(note)) continue;
    const name = { verdict: note.verdict, tag: note.tag, comment: "commented", grade: note.metric }[kind] ?? "";
    const heap = found.get(`${kind} ${name}`) ?? { kind, name, ids: [] };
    if (!heap.ids.includes(id)) heap.ids.push(id);
    found.set(`${kind} ${name}`, heap);
  }
  return [...found.values()];
}

const START = "id in (";

/** The rows of a heap, as a filter. */
export function clauseOf({ ids }: Heap): string {
  return `${START}${ids.slice(0, IDS_MAX).map(quoted).join(", ")})`;
}

/** Clauses with this one in place of another such list; without it where it was on. */
export function chosen(clauses: string[], clause: string): string[] {
  const others = clauses.filter((other) => !other.startsWith(START));
  return clauses.includes(clause) ? others : [...others, clause];
}
