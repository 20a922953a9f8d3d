import { useEffect, useRef, type RefObject } from "react";
import type { Completion, Suggestion } from "./useCompletion";
import css from "./Suggestions.module.css";

interface Props {
  id: string;
  completion: Completion;
  /** The field that it hangs below. */
  below: RefObject<HTMLElement | null>;
  onTake: (suggestion: Suggestion) => void;
}

/** The list below the filter. It is wider than the pane, so it is laid out over the page. */
export function Suggestions({ id, completion, below, onTake }: Props) {
  const { suggestions, active } = completion;
  const list = useRef<HTMLUListElement>(null);
  useEffect(() => {
    const box = below.current?.getBoundingClientRect();
    if (!list.current || !box) return;
    list.current.style.left = `${box.left}px`;
    list.current.style.top = `${box.bottom + 2}px`;
    list.current.style.maxHeight = `${Math.max(112, Math.min(336, window.innerHeight - box.bottom - 16))}px`;
  });
  useEffect(() => {
    list.current?.children[active]?.scrollIntoView({ block: "nearest" });
  }, [active]);
  return (
    <ul ref={list} id={id} className={css["list"]} role="listbox" aria-label="What could be typed here">
      {suggestions.map((suggestion, i) => (
        <li
          key={`${suggestion.kind}:${suggestion.text}`}
          id={`${id}-${i}`}
          role="option"
          aria-selected={i === active}
          className={css["option"]}
          // Before the field loses the focus, which would close the list.
          onMouseDown={(event) => {
            event.preventDefault();
            onTake(suggestion);
          }}
        >
          <code data-kind={suggestion.kind}>{suggestion.text}</code>
          <span className={css["about"]}>{suggestion.about}</span>
        </li>
      ))}
    </ul>
  );
}
