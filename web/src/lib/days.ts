/** Days of a calendar, as numbers: 20251024 is 24 October 2025. Without a zone: the campus decides which day it is. */

export type Ymd = number;

const DAY = 86_400_000; // milliseconds

const toUtc = (ymd: Ymd): number => Date.UTC(Math.floor(ymd / 10_000), (Math.floor(ymd / 100) % 100) - 1, ymd % 100);

function fromUtc(milliseconds: number): Ymd {
  const date = new Date(milliseconds);
  return date.getUTCFullYear() * 10_000 + (date.getUTCMonth() + 1) * 100 + date.getUTCDate();
}

export const addDays = (ymd: Ymd, days: number): Ymd => fromUtc(toUtc(ymd) + days * DAY);

/** The number of days from `from` to `to`. */
export const daysBetween = (from: Ymd, to: Ymd): number => Math.round((toUtc(to) - toUtc(from)) / DAY);

/** "2025-10-24", as in addresses and date fields. */
export const isoDay = (ymd: Ymd): string => new Date(toUtc(ymd)).toISOString().slice(0, 10);

/** The day of "2025-10-24"; null if it is not a day. */
export function parseDay(text: string): Ymd | null {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return null;
  const ymd = Number(text.replaceAll("-", ""));
  return fromUtc(toUtc(ymd)) === ymd ? ymd : null;
}

/** Monday is 0. */
export const weekday = (ymd: Ymd): number => (new Date(toUtc(ymd)).getUTCDay() + 6) % 7;

/** Today, in a zone. */
export function todayIn(timezone: string, now: number): Ymd {
  const parts = new Intl.DateTimeFormat("en-CA", { timeZone: timezone, year: "numeric", month: "2-digit", day: "2-digit" }).format(now);
  return Number(parts.replaceAll("-", ""));
}

const long = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeZone: "UTC" });

export const dayInWords = (ymd: Ymd): string => long.format(toUtc(ymd));

/** "18–24 Oct 2025"; a single day for one. */
export const daysInWords = (from: Ymd, to: Ymd): string => (from === to ? dayInWords(from) : long.formatRange(toUtc(from), toUtc(to)));

export interface CalendarDay {
  readonly ymd: Ymd;
  readonly isActive: boolean;
}

/** The last weeks up to a day, oldest first, each from Monday; the last ends with that day. */
export function weeksUpTo(day: Ymd, weeks: number, active: ReadonlySet<Ymd>): CalendarDay[][] {
  const monday = addDays(day, -weekday(day) - 7 * (weeks - 1));
  const count = daysBetween(monday, day) + 1;
  const days = Array.from({ length: count }, (_, index) => addDays(monday, index)).map((ymd) => ({ ymd, isActive: active.has(ymd) }));
  return Array.from({ length: weeks }, (_, week) => days.slice(week * 7, week * 7 + 7));
}
