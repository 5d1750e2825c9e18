/** Whether Laurels can be reached: the browser says that it is offline, or the last request had no answer. */
import { useSyncExternalStore } from "react";

let answered = true;
const listeners = new Set<() => void>();
const tell = () => {
  for (const listener of listeners) listener();
};

export function noteReachable(isReachable: boolean): void {
  if (answered === isReachable) return;
  answered = isReachable;
  tell();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  window.addEventListener("online", listener);
  window.addEventListener("offline", listener);
  return () => {
    listeners.delete(listener);
    window.removeEventListener("online", listener);
    window.removeEventListener("offline", listener);
  };
}

export const useReachable = (): boolean => useSyncExternalStore(subscribe, () => answered && navigator.onLine);
