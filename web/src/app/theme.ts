/** Light or dark: as the system says, until the user says otherwise. */

export type Theme = "light" | "dark";

const KEY = "theme";

export function theme(): Theme {
  const chosen = localStorage.getItem(KEY);
  if (chosen === "light" || chosen === "dark") return chosen;
  return window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

export function showTheme() {
  document.documentElement.dataset["theme"] = theme();
}

/** Told to what draws on a canvas, and so does not see the variables change. */
export const THEME_CHANGED = "rollyard-theme";

export function switchTheme() {
  localStorage.setItem(KEY, theme() === "dark" ? "light" : "dark");
  showTheme();
  window.dispatchEvent(new Event(THEME_CHANGED));
}
