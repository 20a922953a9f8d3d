/** What the browser keeps for the next visit: conveniences, never what a link has to say. */

import { useCallback, useSyncExternalStore } from "react";

const listeners = new Set<() => void>();
const parsed = new Map<string, { text: string | null; value: unknown }>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  window.addEventListener("storage", listener);
  return () => {
    listeners.delete(listener);
    window.removeEventListener("storage", listener);
  };
}

/** The same object as long as the text is the same, as React wants it. What cannot be read counts as not there. */
export function kept<T>(name: string, usual: T): T {
  const text = localStorage.getItem(name);
  const known = parsed.get(name);
  if (known && known.text === text) return known.value as T;
  let value = usual;
  try {
    const read = JSON.parse(text ?? "null") as unknown;
    if (read !== null && Array.isArray(read) === Array.isArray(usual) && typeof read === typeof usual) value = read as T;
  } catch {
    // Somebody else's text: the next write puts it right.
  }
  parsed.set(name, { text, value });
  return value;
}

export function keep(name: string, value: unknown) {
  try {
    localStorage.setItem(name, JSON.stringify(value));
  } catch {
    // A full or forbidden store costs the convenience only.
    return;
  }
  for (const listener of listeners) listener();
}

export function useKept<T>(name: string, usual: T): [T, (value: T) => void] {
  const value = useSyncExternalStore(subscribe, () => kept(name, usual));
  return [value, useCallback((next: T) => keep(name, next), [name])];
}
