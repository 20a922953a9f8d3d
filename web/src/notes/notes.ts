/** What people and models said of rollouts: its shape, and which is whose. */

export interface NoteSpan {
  message: number;
  start: number;
  end: number;
}

export interface Quote {
  text: string;
  found: boolean;
  span?: NoteSpan & { channel: string };
}

export interface Note {
  note: string;
  id: string;
  kind: "verdict" | "tag" | "comment" | "grade";
  /** In seconds since 1970. */
  at: number;
  by?: string;
  verdict?: string;
  tag?: string;
  text?: string;
  span?: NoteSpan;
  metric?: string;
  score?: number | boolean;
  /** Set where a model gave it. */
  model?: string;
  reasoning?: string;
  quotes?: Quote[];
}

/** What a person can say here. */
export type NewNote = Pick<Note, "kind" | "verdict" | "tag" | "text" | "span">;

export function isByModel(note: Note): boolean {
  return note.model !== undefined;
}

export interface Said {
  /** The last word of each person; the newest last. */
  verdicts: Note[];
  tags: Note[];
  comments: Note[];
  /** By people. */
  grades: Note[];
  byModels: Note[];
}

/** Sorted by what it is. A verdict replaces an earlier one of the same person, a grade one of the same model. */
export function sorted(notes: Note[]): Said {
  const last = (some: Note[], key: (note: Note) => string) => [...new Map(some.map((note) => [key(note), note])).values()];
  const human = notes.filter((note) => !isByModel(note));
  const ofKind = (kind: Note["kind"]) => human.filter((note) => note.kind === kind);
  return {
    verdicts: last(ofKind("verdict"), ({ by = "" }) => by),
    tags: last(ofKind("tag"), ({ tag = "" }) => tag),
    comments: ofKind("comment"),
    grades: last(ofKind("grade"), ({ by = "", metric = "" }) => `${by} ${metric}`),
    byModels: last(notes.filter(isByModel), ({ model = "", metric = "" }) => `${model} ${metric}`),
  };
}

const NAME = "annotator";

/** Who says it, as this browser was told; empty for nobody in particular. */
export function myName(): string {
  return localStorage.getItem(NAME) ?? "";
}

/** Null if nobody was asked yet. */
export function storedName(): string | null {
  return localStorage.getItem(NAME);
}

export function setMyName(name: string) {
  localStorage.setItem(NAME, name.trim());
}

/** A score as it is read. */
export function scoreText(score: number | boolean | undefined): string {
  if (typeof score === "boolean") return score ? "yes" : "no";
  return score === undefined ? "–" : String(Math.round(score * 1000) / 1000);
}
