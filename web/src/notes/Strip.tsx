import { useState } from "react";
import { useJump } from "@/reader/useJump";
import type { Rollout } from "@/reader/useRollout";
import { Grades } from "@/grades/Grades";
import { fileGrades } from "./fileGrades";
import type { Note } from "./notes";
import type { Notes } from "./useNotes";
import { CommentField, NameField, TagField } from "./Writing";
import css from "./Notes.module.css";

interface Props {
  rollout: Rollout;
  notes: Notes;
  writing: "tag" | "comment" | null;
  onDone: () => void;
}

/** What was said of the rollout: people first, models apart. Nothing where nobody said anything. */
export function Strip({ rollout, notes, writing, onDone }: Props) {
  const { verdicts, tags, comments, grades, byModels, add, remove, error, name, setName } = notes;
  const [renaming, setRenaming] = useState(false);
  const byPeople = [...verdicts, ...tags, ...grades];
  const graded = [...byModels, ...fileGrades(rollout.id, rollout.grades, rollout.pieces)];
  const isSaid = byPeople.length > 0 || comments.length > 0;
  if (!isSaid && graded.length === 0 && writing === null && !error) return null;
  return (
    <section className={css["strip"]} aria-label="Notes">
      {error && (
        <p className={css["error"]} role="alert">
          This was not kept: {error.message}
        </p>
      )}
      {isSaid && (
        <ul className={css["said"]} aria-label="Said by people">
          {byPeople.map((note) => (
            <Word key={note.note + note.kind} note={note} onRemove={() => remove(note)} />
          ))}
          {comments.map((note) => (
            <Comment key={note.note} note={note} onRemove={() => remove(note)} />
          ))}
        </ul>
      )}
      {writing === "tag" && <TagField onSave={(tag) => add({ kind: "tag", tag })} onClose={onDone} />}
      {writing === "comment" && <CommentField onSave={(text) => add({ kind: "comment", text })} onClose={onDone} />}
      {isSaid && (name === null || renaming) && (
        <NameField
          name={name ?? ""}
          onName={(next) => {
            setName(next);
            setRenaming(false);
          }}
        />
      )}
      {isSaid && name !== null && !renaming && (
        <button type="button" className={css["me"]} onClick={() => setRenaming(true)}>
          {name === "" ? "You write without a name" : `You write as ${name}`}
        </button>
      )}
      {graded.length > 0 && <Grades grades={graded} />}
    </section>
  );
}

/** A verdict, a tag, a grade of a person: a word and who says it. */
function Word({ note, onRemove }: { note: Note; onRemove: () => void }) {
  const text = note.kind === "verdict" ? note.verdict : note.kind === "tag" ? `#${note.tag ?? ""}` : `${note.metric ?? ""} ${String(note.score)}`;
  return (
    <li className={css["word"]} data-verdict={note.verdict}>
      <span>{text}</span>
      <By note={note} />
      <Remove what={text ?? ""} onRemove={onRemove} />
    </li>
  );
}

function Comment({ note, onRemove }: { note: Note; onRemove: () => void }) {
  const jump = useJump();
  const { span, text = "" } = note;
  return (
    <li className={css["comment"]}>
      <p>{text}</p>
      {span && (
        <button type="button" className={css["where"]} onClick={() => jump({ ...span, channel: null })}>
          message {span.message + 1}, {span.end - span.start} characters
        </button>
      )}
      <By note={note} />
      <Remove what={`the comment “${text.slice(0, 30)}”`} onRemove={onRemove} />
    </li>
  );
}

function By({ note: { by, at } }: { note: Note }) {
  const when = new Date(at * 1000).toLocaleString("en");
  return (
    <span className={css["by"]} title={when}>
      {by === undefined || by === "" ? "" : by}
    </span>
  );
}

function Remove({ what, onRemove }: { what: string; onRemove: () => void }) {
  return (
    <button type="button" className={css["remove"]} aria-label={`Take back ${what}`} title="Take it back" onClick={onRemove}>
      ✕
    </button>
  );
}
