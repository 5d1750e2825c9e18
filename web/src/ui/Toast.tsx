/** A message about what just happened: `say("Copied")`. Screen readers read it, and it disappears by itself. */
import { useSyncExternalStore } from "react";
import styles from "./ui.module.css";

interface Said {
  id: number;
  text: string;
  isBad: boolean;
}

const STAYS = 6_000; // milliseconds
let said: readonly Said[] = [];
let last = 0;
const listeners = new Set<() => void>();

function change(to: readonly Said[]): void {
  said = to;
  for (const listener of listeners) listener();
}

export function say(text: string, { isBad = false } = {}): void {
  const id = ++last;
  change([...said, { id, text, isBad }].slice(-3));
  setTimeout(() => change(said.filter((each) => each.id !== id)), STAYS);
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function Toasts() {
  const all = useSyncExternalStore(subscribe, () => said);
  return (
    <div className={styles["toasts"]} role="status">
      {all.map((each) => (
        <p key={each.id} className={`${styles["toast"]} ${each.isBad ? styles["bad"] : ""}`}>
          {each.text}
        </p>
      ))}
    </div>
  );
}
