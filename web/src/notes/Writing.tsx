import { useQuery } from "@tanstack/react-query";
import { useId, useState } from "react";
import { Button } from "@/parts/Button";
import { annotated } from "./annotated";
import css from "./Notes.module.css";

interface Props {
  onSave: (text: string) => void;
  onClose: () => void;
}

/** A tag, with those that are in use to choose from. */
export function TagField({ onSave, onClose }: Props) {
  const [tag, setTag] = useState("");
  const list = useId();
  const known = useQuery({ queryKey: ["annotations"], queryFn: annotated });
  const save = () => {
    if (tag.trim() !== "") onSave(tag.trim());
    onClose();
  };
  return (
    <form
      className={css["field"]}
      onSubmit={(event) => {
        event.preventDefault();
        save();
      }}
    >
      <input
        // The user pressed the key for it.
        autoFocus
        aria-label="Tag"
        placeholder="Tag, then Enter"
        list={list}
        maxLength={100}
        autoComplete="off"
        value={tag}
        onChange={(event) => setTag(event.target.value)}
        onKeyDown={(event) => event.key === "Escape" && onClose()}
      />
      <datalist id={list}>
        {known.data?.filter(({ kind }) => kind === "tag").map(({ name }) => <option key={name} value={name} />)}
      </datalist>
    </form>
  );
}

/** A comment; Enter ends a line, so that it is kept by Ctrl+Enter or the button. */
export function CommentField({ onSave, onClose, label = "Comment" }: Props & { label?: string }) {
  const [text, setText] = useState("");
  const save = () => {
    if (text.trim() !== "") onSave(text.trim());
    onClose();
  };
  return (
    <div className={css["field"]}>
      <textarea
        autoFocus
        aria-label={label}
        placeholder="Comment, then Ctrl+Enter"
        rows={2}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") onClose();
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) save();
        }}
      />
      <Button label="Keep the comment" kind="primary" disabled={text.trim() === ""} onClick={save}>
        Keep
      </Button>
    </div>
  );
}

/** Asked once, after the first word of somebody. */
export function NameField({ name, onName }: { name: string; onName: (name: string) => void }) {
  const [draft, setDraft] = useState(name);
  return (
    <form
      className={css["field"]}
      onSubmit={(event) => {
        event.preventDefault();
        onName(draft);
      }}
    >
      <label>
        Your name beside your notes
        <input maxLength={60} autoComplete="nickname" placeholder="may stay empty" value={draft} onChange={(event) => setDraft(event.target.value)} />
      </label>
      <button type="submit" className={css["keep"]}>
        Keep
      </button>
    </form>
  );
}
