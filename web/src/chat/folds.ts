/** What is folded and how text is shown: the choice for all is kept for the next rollout, single ones are not. */

import { useCallback, useState } from "react";
import type { Message, Part } from "./parts";

function useKept(name: string, usual: boolean): [boolean, (value: boolean) => void] {
  const [value, setValue] = useState(() => (localStorage.getItem(name) ?? String(usual)) === "true");
  const keep = useCallback(
    (next: boolean) => {
      localStorage.setItem(name, String(next));
      setValue(next);
    },
    [name],
  );
  return [value, keep];
}

const keyOf = (what: Message | Part): string => ("role" in what ? `m${what.index}` : `p${what.index}`);

export function useFolds(messages: readonly Message[]) {
  const [raw, setRaw] = useKept("chat-raw", false);
  const [isReasoningFolded, keepReasoningFolded] = useKept("chat-reasoning-folded", false);
  const [single, setSingle] = useState<ReadonlyMap<string, boolean>>(new Map());

  const isOpen = useCallback(
    (what: Message | Part): boolean => {
      const chosen = single.get(keyOf(what));
      if (chosen !== undefined) return chosen;
      if ("role" in what) return true;
      return what.kind === "reasoning" ? !isReasoningFolded : what.kind !== "more";
    },
    [single, isReasoningFolded],
  );

  const setOpen = useCallback((what: readonly (Message | Part)[], open: boolean) => {
    setSingle((old) => {
      if (what.every((one) => old.get(keyOf(one)) === open)) return old;
      return new Map([...old, ...what.map((one) => [keyOf(one), open] as const)]);
    });
  }, []);

  const foldReasoning = useCallback(
    (fold: boolean) => {
      keepReasoningFolded(fold);
      const parts = messages.flatMap((message) => message.parts).filter((part) => part.kind === "reasoning");
      setSingle((old) => new Map([...old].filter(([key]) => !parts.some((part) => keyOf(part) === key))));
    },
    [keepReasoningFolded, messages],
  );

  const setAll = useCallback(
    (open: boolean) => {
      if (!open) {
        setSingle(new Map(messages.map((message) => [keyOf(message), false])));
        return;
      }
      const all = messages.flatMap((message) => [message, ...message.parts.filter((part) => part.kind !== "more")]);
      setSingle(new Map(all.map((one) => [keyOf(one), true])));
    },
    [messages],
  );

  return { raw, setRaw, isReasoningFolded, foldReasoning, isOpen, setOpen, setAll };
}

export type Folds = ReturnType<typeof useFolds>;
