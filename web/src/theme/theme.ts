/** Light or dark: the system's choice, unless the reader chose. */
import { useSyncExternalStore } from "react";

export type Theme = "auto" | "light" | "dark";
export const THEMES: readonly Theme[] = ["auto", "light", "dark"];

const NAME = "laurels.theme"; // in localStorage
const listeners = new Set<() => void>();

export function chosenTheme(): Theme {
  const stored = localStorage.getItem(NAME);
  return THEMES.find((theme) => theme === stored) ?? "auto";
}

export function chooseTheme(theme: Theme): void {
  if (theme === "auto") localStorage.removeItem(NAME);
  else localStorage.setItem(NAME, theme);
  showTheme(theme);
  for (const listener of listeners) listener();
}

/** Applies a theme without storing it, for embedded pages. */
export function showTheme(theme: Theme): void {
  if (theme === "auto") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme;
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export const useTheme = (): Theme => useSyncExternalStore(subscribe, chosenTheme);
