import { useState } from "react";
import { scoreText, type Note, type Quote } from "@/notes/notes";
import { useJump } from "@/reader/useJump";
import css from "./Grades.module.css";

/** What models said of a rollout: the scores, and behind each its reasons and quotes. */
export function Grades({ grades }: { grades: Note[] }) {
  const [shown, setShown] = useState<string | null>(null);
  const open = grades.find(({ note }) => note === shown);
  return (
    <div className={css["grades"]} role="group" aria-label="Graded by models">
      <ul className={css["scores"]}>
        {grades.map((grade) => (
          <li key={grade.note}>
            <button type="button" aria-expanded={grade.note === shown} title={grade.model} onClick={() => setShown(grade.note === shown ? null : grade.note)}>
              {(grade.metric ?? "").replaceAll("_", " ")} <strong>{scoreText(grade.score)}</strong>
            </button>
          </li>
        ))}
      </ul>
      {open && <Reasons grade={open} />}
    </div>
  );
}

function Reasons({ grade }: { grade: Note }) {
  const { reasoning, quotes = [], model } = grade;
  return (
    <div className={css["reasons"]}>
      <p>
        {reasoning === undefined || reasoning === "" ? "No reasons were given." : reasoning}
        <span className={css["model"]}> {model}</span>
      </p>
      {quotes.length > 0 && (
        <ul aria-label="Quotes">
          {quotes.map((quote, n) => (
            <QuoteLine key={n} quote={quote} />
          ))}
        </ul>
      )}
    </div>
  );
}

function QuoteLine({ quote: { text, found, span } }: { quote: Quote }) {
  const jump = useJump();
  if (!found || !span) {
    return (
      <li className={css["lost"]}>
        <q>{text}</q> is not in the rollout
      </li>
    );
  }
  return (
    <li>
      <button type="button" className={css["quote"]} title="Show it in the chat" onClick={() => jump(span)}>
        <q>{text}</q>
      </button>
    </li>
  );
}
