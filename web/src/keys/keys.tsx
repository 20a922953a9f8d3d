/** Keys: who listens to which, one listener for the window, and the list that `?` shows. */

import { createContext, use, useEffect, useMemo, useRef, useSyncExternalStore, type ReactNode } from "react";

export interface KeyAction {
  /** As `KeyboardEvent.key` has it, with modifiers before: `j`, `?`, `Shift+D`, `Mod+k`, `Escape`. */
  keys: string;
  /** What it does, as the help and the tooltip say it. */
  label: string;
  /** Heading in the help. */
  group: string;
  run: () => void;
  /** Also while typing into a field. */
  inFields?: boolean;
}

class Registry {
  private actions = new Map<symbol, KeyAction>();
  private listeners = new Set<() => void>();
  private list: KeyAction[] = [];

  put(id: symbol, action: KeyAction) {
    this.actions.set(id, action);
    this.changed();
  }

  drop(id: symbol) {
    this.actions.delete(id);
    this.changed();
  }

  /** The action that was registered last wins: what is in front listens first. */
  find(keys: string): KeyAction | undefined {
    return this.list.findLast((action) => action.keys === keys);
  }

  all = () => this.list;

  subscribe = (listener: () => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  private changed() {
    this.list = [...this.actions.values()];
    for (const listener of this.listeners) listener();
  }
}

const Context = createContext<Registry | null>(null);

function useRegistry(): Registry {
  const registry = use(Context);
  if (!registry) throw new Error("KeysProvider is missing");
  return registry;
}

export function KeysProvider({ children }: { children: ReactNode }) {
  const registry = useMemo(() => new Registry(), []);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.isComposing) return;
      const action = registry.find(nameOf(event));
      if (!action || (isField(event.target) && !action.inFields)) return;
      event.preventDefault();
      action.run();
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, [registry]);
  return <Context value={registry}>{children}</Context>;
}

/** Listens to a key while the component is there and `action` is not null. */
export function useKey(action: KeyAction | null) {
  const registry = useRegistry();
  const id = useRef(Symbol());
  const run = useRef(action?.run);
  useEffect(() => {
    run.current = action?.run;
  });
  const { keys, label, group, inFields } = action ?? {};
  useEffect(() => {
    const name = id.current;
    if (keys === undefined || label === undefined || group === undefined) return;
    registry.put(name, { keys, label, group, inFields: inFields ?? false, run: () => run.current?.() });
    return () => registry.drop(name);
  }, [registry, keys, label, group, inFields]);
}

export function useAllKeys(): KeyAction[] {
  const registry = useRegistry();
  return useSyncExternalStore(registry.subscribe, registry.all);
}

export function nameOf(event: Pick<KeyboardEvent, "key" | "shiftKey" | "ctrlKey" | "metaKey" | "altKey">): string {
  const isLetter = /^[a-zA-Z]$/.test(event.key);
  const parts = [
    event.ctrlKey || event.metaKey ? "Mod" : "",
    event.altKey ? "Alt" : "",
    // Signs already say whether Shift was held: `?` is `?` on every keyboard.
    event.shiftKey && (isLetter || event.key.length > 1) ? "Shift" : "",
    isLetter && event.shiftKey ? event.key.toUpperCase() : event.key,
  ];
  return parts.filter(Boolean).join("+");
}

function isField(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement) return true;
  return target instanceof HTMLInputElement && !["checkbox", "radio", "button", "range"].includes(target.type);
}
