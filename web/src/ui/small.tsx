/** Small components of rows and cards. */
import { type ReactNode, useEffect, useState } from "react";
import { serverNow } from "../lib/clock";
import { mayLoad } from "../lib/pictures";
import { count, moment, score, timeLeft } from "../lib/words";
import styles from "./ui.module.css";

export type Tone = "leaf" | "gold" | "silver" | "bronze" | "wrong";

export function Badge({ tone, children }: { tone?: Tone | undefined; children: ReactNode }) {
  return <span className={`${styles["badge"]} ${tone ? styles[tone] : ""}`}>{children}</span>;
}

/** A rank; the first three have medals. */
export function Rank({ rank }: { rank: number }) {
  return (
    <span className={styles["rank"]} data-place={rank}>
      {count(rank)}
    </span>
  );
}

/** Ranks gained (positive) or lost since the previous window; empty if unknown or unchanged. */
export function RankChange({ change, since = "the previous window" }: { change: number | null | undefined; since?: string }) {
  if (!change) return null;
  const words = `${change > 0 ? "Up" : "Down"} ${count(Math.abs(change))} since ${since}`;
  return (
    <span className={`${styles["change"]} ${change > 0 ? styles["rose"] : styles["fell"]}`} title={words}>
      <span aria-hidden="true">
        {change > 0 ? "▲" : "▼"} {count(Math.abs(change))}
      </span>
      <span className="unseen">{words}</span>
    </span>
  );
}

export const Score = ({ value }: { value: number | string }) => <span className="numbers">{score(value)}</span>;

export const Moment = ({ at }: { at: string }) => <time dateTime={at}>{moment(at)}</time>;

/** Counts down to a moment by the server's clock, then calls `onEnd`. */
export function TimeLeft({ until, onEnd }: { until: string; onEnd?: () => void }) {
  const end = Date.parse(until);
  const [now, setNow] = useState(serverNow);
  const hasEnded = now >= end;
  useEffect(() => {
    if (hasEnded) return;
    const timer = setInterval(() => setNow(serverNow()), 1000);
    return () => clearInterval(timer);
  }, [hasEnded, end]);
  useEffect(() => {
    if (hasEnded) onEnd?.();
    // Once for each end, even if `onEnd` changes.
  }, [hasEnded, end]);
  return (
    <time className={styles["timeLeft"]} role="timer" dateTime={until}>
      {timeLeft(end - now)}
    </time>
  );
}

/** Two letters of a name, instead of a picture: `amber_fox` AF, `Ada` AD. */
export function initials(name: string): string {
  const words = name.split(/[^\p{L}\p{N}]+|(?<=\p{Ll})(?=\p{Lu})/u).filter(Boolean);
  const [first = "?", second] = words;
  const letters = second ? [...first].slice(0, 1).concat([...second].slice(0, 1)) : [...first].slice(0, 2);
  return letters.join("").toUpperCase();
}

const AVATAR_TONES: readonly Tone[] = ["leaf", "gold", "silver", "bronze"];

/** Decorative: the name is beside it. */
export function Avatar({ name, url }: { name: string; url?: string | null | undefined }) {
  const [failed, setFailed] = useState<string>();
  if (url && url !== failed && mayLoad(url)) {
    return <img className={styles["avatar"]} src={url} alt="" loading="lazy" referrerPolicy="no-referrer" onError={() => setFailed(url)} />;
  }
  const tone = AVATAR_TONES[[...name].reduce((sum, letter) => sum + (letter.codePointAt(0) ?? 0), 0) % AVATAR_TONES.length];
  return (
    <span className={`${styles["avatar"]} ${styles["badge"]} ${tone ? styles[tone] : ""}`} aria-hidden="true">
      {initials(name)}
    </span>
  );
}
