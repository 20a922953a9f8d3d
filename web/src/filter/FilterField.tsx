import { useEffect, useId, useRef, useState, type KeyboardEvent } from "react";
import { useViewState } from "@/state/location";
import { fromBytes, taken } from "./offsets";
import { Suggestions } from "./Suggestions";
import { useCompletion, type Suggestion } from "./useCompletion";
import { useFilterCheck } from "./useFilterCheck";
import { useSettled } from "./useSettled";
import { blamed } from "./words";
import css from "./FilterField.module.css";

/** The text of the filter: runs when it parses, and says where it does not. */
export function FilterField({ id }: { id: string }) {
  const [{ q }, set] = useViewState();
  const [draft, setDraft] = useState(q);
  const [seen, setSeen] = useState(q);
  // A link, a chip or the back button brings another text.
  if (q !== seen) {
    setSeen(q);
    setDraft(q);
  }
  const [entered, setEntered] = useState<string | null>(null);
  const paused = useSettled(draft, 300);
  const settled = entered === draft ? draft : paused;
  const { error, isGood } = useFilterCheck(settled);
  const field = useRef<HTMLTextAreaElement>(null);
  const pushed = useRef(false);
  const completion = useCompletion();
  const list = useId();
  const problem = useId();

  const run = (text: string) => {
    set({ q: text }, pushed.current ? "replace" : "push");
    // One step back leads to before this was typed, not through its letters.
    pushed.current = true;
  };
  // Not `draft`: what is being typed at this moment is not known to be good.
  const ready = isGood && settled === draft && settled !== q;
  useEffect(() => {
    if (ready) run(settled);
    // eslint-disable-next-line react-hooks/exhaustive-deps -- runs when a text has become good, and for nothing else
  }, [ready, settled]);

  const type = (text: string, at: number) => {
    setDraft(text);
    completion.open(text, at);
  };
  const take = (suggestion: Suggestion | undefined) => {
    if (!suggestion || !completion.place) return;
    const next = taken(draft, completion.place.from, completion.place.to, suggestion);
    type(next.text, next.at);
    requestAnimationFrame(() => field.current?.setSelectionRange(next.at, next.at));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const { suggestions, active } = completion;
    const isOpen = suggestions.length > 0;
    if (event.key === "ArrowDown" && isOpen) completion.move(1);
    else if (event.key === "ArrowUp" && isOpen) completion.move(-1);
    else if (event.key === "Tab" && isOpen && !event.shiftKey) take(suggestions[Math.max(active, 0)]);
    else if (event.key === "Enter" && isOpen && active >= 0) take(suggestions[active]);
    else if (event.key === "Enter" && !event.shiftKey) {
      completion.close();
      setEntered(draft);
    } else if (event.key === "Escape") {
      if (isOpen) completion.close();
      else field.current?.blur();
    } else if (event.key === " " && event.ctrlKey) completion.open(draft, field.current?.selectionStart ?? draft.length);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  const [from, to] = error?.at && settled === draft ? [fromBytes(draft, error.at[0]), fromBytes(draft, error.at[1])] : [0, 0];
  // While the next word is offered, a filter that only lacks its end is not wrong yet.
  const isUnfinished = completion.suggestions.length > 0 && to >= draft.trimEnd().length;
  const wrong = settled === draft && !isUnfinished ? error : null;
  return (
    <div className={css["box"]}>
      <div className={css["field"]} data-wrong={wrong !== null}>
        <textarea
          ref={field}
          id={id}
          className={css["input"]}
          value={draft}
          rows={1}
          placeholder={'reward > 0.5 and data_source contains "math"'}
          spellCheck={false}
          autoCapitalize="off"
          autoCorrect="off"
          aria-autocomplete="list"
          aria-controls={completion.suggestions.length > 0 ? list : undefined}
          aria-activedescendant={completion.active >= 0 ? `${list}-${completion.active}` : undefined}
          aria-invalid={wrong !== null}
          aria-describedby={wrong ? problem : undefined}
          aria-keyshortcuts="q"
          title="Type a filter (q)"
          onChange={(event) => type(event.target.value, event.target.selectionStart)}
          onKeyDown={onKeyDown}
          onFocus={() => {
            pushed.current = false;
            if (draft === "") completion.open("", 0);
          }}
          onBlur={completion.close}
        />
        <div className={css["shown"]} aria-hidden>
          {blamed(draft, wrong ? from : 0, wrong ? to : 0).map((part, i) => (
            <span key={i} data-kind={part.kind} data-bad={part.bad}>
              {part.text}
            </span>
          ))}
          {wrong && from === to && <span data-bad="true"> </span>}
          {"\u200b"}
        </div>
      </div>
      {completion.suggestions.length > 0 && <Suggestions id={list} completion={completion} below={field} onTake={take} />}
      {wrong && (
        <div id={problem} className={css["problem"]} role="alert">
          <p>{wrong.message}</p>
          {wrong.expected.length > 0 && <p className={css["expected"]}>Could stand there: {wrong.expected.slice(0, 12).join(", ")}</p>}
          <p className={css["expected"]}>The rows stay as they were.</p>
        </div>
      )}
    </div>
  );
}
