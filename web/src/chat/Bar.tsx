import { useEffect, useRef } from "react";
import { Button } from "@/parts/Button";
import { count, counted } from "@/parts/numbers";
import type { Folds } from "./folds";
import { FOUND_MAX, type Find } from "./find";
import css from "./Bar.module.css";

interface Props {
  folds: Folds;
  find: Find;
  messages: number;
  hasReasoning: boolean;
  /** Whether every message is folded. */
  isAllFolded: boolean;
}

/** What can be done with the whole chat, and the line to find in it. */
export function Bar({ folds, find, messages, hasReasoning, isAllFolded }: Props) {
  const { raw, setRaw, isReasoningFolded, foldReasoning, setAll } = folds;
  return (
    <div className={css["bars"]}>
      <div className={css["bar"]} role="toolbar" aria-label="Chat">
        <span className={css["count"]}>{counted(messages, "message")}</span>
        <Button label="Find in the chat" hotkey="f" keyGroup="Chat" kind="quiet" pressed={find.isShown} onClick={() => find.setShown(!find.isShown)}>
          Find
        </Button>
        <Button label={raw ? "Show text rendered" : "Show text raw"} hotkey="r" keyGroup="Chat" kind="quiet" pressed={raw} onClick={() => setRaw(!raw)}>
          Raw
        </Button>
        {hasReasoning && (
          <Button
            label={isReasoningFolded ? "Unfold reasoning" : "Fold reasoning, here and in the next"}
            hotkey="Shift+Z"
            keyGroup="Chat"
            kind="quiet"
            pressed={isReasoningFolded}
            onClick={() => foldReasoning(!isReasoningFolded)}
          >
            Fold reasoning
          </Button>
        )}
        <Button label={isAllFolded ? "Unfold all messages" : "Fold all messages"} hotkey="z" keyGroup="Chat" kind="quiet" onClick={() => setAll(isAllFolded)}>
          {isAllFolded ? "Unfold all" : "Fold all"}
        </Button>
      </div>
      {find.isShown && <FindLine find={find} />}
    </div>
  );
}

function FindLine({ find }: { find: Find }) {
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    input.current?.focus();
    input.current?.select();
  }, []);
  const { wanted, look, isCase, turnCase, current, total, move, setShown } = find;
  const many = total >= FOUND_MAX ? `${count(total)} or more` : count(total);
  const where = wanted === "" ? "" : total === 0 ? "nothing found" : current < 0 ? `${many} found` : `${count(current + 1)} of ${many}`;
  return (
    <div className={css["find"]} role="search" aria-label="Find in the chat">
      <input
        ref={input}
        type="search"
        aria-label="Text to find in the chat"
        placeholder="Find in this rollout"
        spellCheck={false}
        value={wanted}
        onChange={(event) => look(event.target.value)}
        onKeyDown={(event) => {
          if (event.nativeEvent.isComposing) return;
          if (event.key === "Enter") move(event.shiftKey ? -1 : 1);
          else if (event.key === "Escape") setShown(false);
          else return;
          event.preventDefault();
        }}
      />
      <span className={css["where"]} role="status">
        {where}
      </span>
      <Button label="Tell upper from lower case" kind="quiet" pressed={isCase} onClick={() => turnCase(!isCase)}>
        Aa
      </Button>
      <Button label="Previous (Shift+Enter)" kind="quiet" disabled={total === 0} onClick={() => move(-1)}>
        ↑
      </Button>
      <Button label="Next (Enter)" kind="quiet" disabled={total === 0} onClick={() => move(1)}>
        ↓
      </Button>
      <Button label="Close (Escape)" kind="quiet" onClick={() => setShown(false)}>
        ✕
      </Button>
    </div>
  );
}
