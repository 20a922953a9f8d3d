import { useState } from "react";
import { Button } from "@/parts/Button";
import type { NoteSpan } from "./notes";
import type { Notes } from "./useNotes";
import { CommentField } from "./Writing";

/** A comment on the text that is selected in the chat. */
export function SelectionComment({ span, notes }: { span: NoteSpan; notes: Notes }) {
  const [writing, setWriting] = useState(false);
  const { message, start, end } = span;
  if (!writing) {
    return (
      <Button label="Comment on this text" hotkey="Shift+C" keyGroup="Notes" kind="quiet" onClick={() => setWriting(true)}>
        Comment
      </Button>
    );
  }
  return (
    <CommentField
      label="Comment on this text"
      onSave={(text) => notes.add({ kind: "comment", text, span: { message, start, end } })}
      onClose={() => {
        setWriting(false);
        document.getSelection()?.removeAllRanges();
      }}
    />
  );
}
