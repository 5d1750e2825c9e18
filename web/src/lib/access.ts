/**
 * The credential: an API key, or a player's token. It comes in the fragment of an address (`#key=…`, `#token=…`), which
 * browsers send to no server, and stays in sessionStorage: in this tab, until it is closed.
 */
import { useSyncExternalStore } from "react";

export type Kind = "key" | "token";

const NAMES: Record<Kind, string> = { key: "laurels.key", token: "laurels.token" };
const listeners = new Set<() => void>();

export const access = (kind: Kind): string => sessionStorage.getItem(NAMES[kind]) ?? "";

export function remember(kind: Kind, secret: string): void {
  if (secret) sessionStorage.setItem(NAMES[kind], secret);
  else sessionStorage.removeItem(NAMES[kind]);
  for (const listener of listeners) listener();
}

export const forget = (kind: Kind): void => remember(kind, "");

/** Takes a credential from the fragment, and removes it from the address. */
export function takeFromAddress(): void {
  const given = new URLSearchParams(location.hash.slice(1));
  const kinds = (Object.keys(NAMES) as Kind[]).filter((kind) => given.has(kind));
  if (!kinds.length) return;
  for (const kind of kinds) {
    remember(kind, given.get(kind) ?? "");
    given.delete(kind);
  }
  const rest = given.toString();
  history.replaceState(null, "", location.pathname + location.search + (rest ? `#${rest}` : ""));
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Whether a student looks: with a token, and without a key. */
export function useIsStudent(): boolean {
  const key = useAccess("key");
  const token = useAccess("token");
  return Boolean(token) && !key;
}

export const useAccess = (kind: Kind): string => useSyncExternalStore(subscribe, () => access(kind));
