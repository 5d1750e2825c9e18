/** What this browser remembers for a project: the reader's own member, and friends. */
import { useSyncExternalStore } from "react";

type Kind = "me" | "friends";

const nameOf = (kind: Kind, project: string): string => `laurels.${kind}.${project}`;
const listeners = new Set<() => void>();

export const remembered = (kind: Kind, project: string): string => localStorage.getItem(nameOf(kind, project)) ?? "";

export function keep(kind: Kind, project: string, text: string): void {
  if (text) localStorage.setItem(nameOf(kind, project), text);
  else localStorage.removeItem(nameOf(kind, project));
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  window.addEventListener("storage", listener);
  return () => {
    listeners.delete(listener);
    window.removeEventListener("storage", listener);
  };
}

export const useRemembered = (kind: Kind, project: string): string => useSyncExternalStore(subscribe, () => remembered(kind, project));
