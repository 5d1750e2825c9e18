/** Numbers and dates in the reader's locale. */

const whole = new Intl.NumberFormat();
const exact = new Intl.NumberFormat(undefined, { maximumFractionDigits: 6 });
const percent = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 1 });
const compact = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });
const plural = new Intl.PluralRules("en");

export const count = (value: number): string => whole.format(value);
export const short = (value: number): string => compact.format(value);
export const share = (value: number): string => percent.format(value);

/** A score: a number, or the decimal digits of an int64. */
export const score = (value: number | string): string =>
  typeof value === "string" && /^-?\d+$/.test(value) ? whole.format(BigInt(value)) : exact.format(Number(value));

/** "1 entry", "2 entries". */
export const counted = (value: number, one: string, many = `${one}s`): string =>
  `${count(value)} ${plural.select(value) === "one" ? one : many}`;

/** `rolling_7d` as "Rolling 7d". */
export function readable(name: string): string {
  const words = name.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

const dateTime = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const dateOnly = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });

export const moment = (iso: string): string => dateTime.format(new Date(iso));
export const date = (iso: string): string => dateOnly.format(new Date(iso));

/** Milliseconds as "2 d 03:04:05", counted down; never below zero. */
export function timeLeft(milliseconds: number): string {
  const left = Math.max(0, Math.ceil(milliseconds / 1000));
  const two = (value: number) => String(Math.floor(value)).padStart(2, "0");
  const clock = `${two((left % 86_400) / 3600)}:${two((left % 3600) / 60)}:${two(left % 60)}`;
  return left >= 86_400 ? `${count(Math.floor(left / 86_400))} d ${clock}` : clock;
}

const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });
const UNITS: readonly [Intl.RelativeTimeFormatUnit, number][] = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
];

/** "2 hours ago", "in 5 minutes". */
export function ago(iso: string, now: number): string {
  const seconds = (Date.parse(iso) - now) / 1000;
  const [unit, size] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? ["second", 1];
  return relative.format(Math.round(seconds / size), unit);
}

const lists = new Intl.ListFormat(undefined, { type: "conjunction" });
export const list = (words: readonly string[]): string => lists.format(words);
