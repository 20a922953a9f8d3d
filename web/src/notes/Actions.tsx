import { useKey } from "@/keys/keys";
import { Button } from "@/parts/Button";
import type { Notes } from "./useNotes";

interface Props {
  notes: Notes;
  writing: "tag" | "comment" | null;
  onWrite: (what: "tag" | "comment") => void;
}

/** One key for a verdict, one for a tag, one for a comment. */
export function Actions({ notes, writing, onWrite }: Props) {
  const { verdict, setVerdict } = notes;
  const give = (next: "good" | "bad") => setVerdict(verdict?.verdict === next ? null : next);
  useKey({ keys: "0", label: "Take the verdict back", group: "Notes", run: () => setVerdict(null) });
  return (
    <>
      <Button label="Good" hotkey="+" keyGroup="Notes" pressed={verdict?.verdict === "good"} onClick={() => give("good")}>
        + Good
      </Button>
      <Button label="Bad" hotkey="-" keyGroup="Notes" pressed={verdict?.verdict === "bad"} onClick={() => give("bad")}>
        − Bad
      </Button>
      <Button label="Tag it" hotkey="#" keyGroup="Notes" kind="quiet" pressed={writing === "tag"} onClick={() => onWrite("tag")}>
        # Tag
      </Button>
      <Button label="Comment on it" hotkey="Shift+C" keyGroup="Notes" kind="quiet" pressed={writing === "comment"} onClick={() => onWrite("comment")}>
        Comment
      </Button>
    </>
  );
}
