/** The leaderboards of a campus: periods, scopes, badges, and how they are shown. */
import type { components } from "./api";
import { addDays, daysInWords, type Ymd } from "./days";

type Schemas = components["schemas"];
export type Row = Schemas["LeaderboardRow"];
export type Leaderboard = Schemas["LeaderboardResponse"];
export type Campus = Schemas["CampusInfo"];
export type Summary = Schemas["MySummary"];
export type Streak = Schemas["UserStreak"];
export type EarnedBadge = Schemas["UserBadge"];

export const SCOPES = ["overall", "social", "engagement", "popularity"] as const;
export const PERIODS = ["daily", "weekly", "monthly"] as const;
export type Scope = (typeof SCOPES)[number];
export type Period = (typeof PERIODS)[number];

/** How many days each period ranks, the day included. */
export const DAYS: Record<Period, number> = { daily: 1, weekly: 7, monthly: 30 };

export const asScope = (text: string): Scope => SCOPES.find((scope) => scope === text) ?? "overall";
export const asPeriod = (text: string): Period => PERIODS.find((period) => period === text) ?? "daily";

/** The days that a period ending with `ymd` ranks: "18–24 Oct 2025". */
export const rankedDays = (period: Period, ymd: Ymd): string => daysInWords(addDays(ymd, 1 - DAYS[period]), ymd);

export const ROWS = 50;

/** The first row, from 0, of the page with this row. */
export const pageOf = (row: number): number => Math.floor(row / ROWS) * ROWS;

export interface BadgeWords {
  readonly title: string;
  readonly about: string;
}

const BADGES: Record<string, BadgeWords> = {
  daily_top10: { title: "Top 10 of a day", about: "Among the ten best overall when a day ended" },
  weekly_top10: { title: "Top 10 of a week", about: "Among the ten best overall when a week ended" },
  streak_30: { title: "Thirty days", about: "Active on thirty days in a row" },
  social_butterfly: { title: "Social butterfly", about: "Met fifteen people or more within a week" },
};

/** The words for a badge; an unknown kind is shown by its name. */
export const badgeWords = (kind: string): BadgeWords => BADGES[kind] ?? { title: kind.replaceAll("_", " "), about: "" };

export interface BadgeTally {
  readonly kind: string;
  readonly times: number;
  readonly last: Ymd;
}

/** Each kind once, the latest first, with how often and when last. */
export function tally(badges: readonly EarnedBadge[]): BadgeTally[] {
  const kinds = [...new Set(badges.map((badge) => badge.kind))];
  return kinds
    .map((kind) => {
      const days = badges.filter((badge) => badge.kind === kind).map((badge) => badge.earned_ymd);
      return { kind, times: days.length, last: Math.max(...days) };
    })
    .sort((a, b) => b.last - a.last);
}

const points = new Intl.NumberFormat(undefined, { minimumFractionDigits: 1, maximumFractionDigits: 1 });
/** A score of a pillar, as it is shown. */
export const points1 = (score: number): string => points.format(score);

/** Whether a streak can still grow today. */
export const isAlive = (lastActive: Ymd, today: Ymd): boolean => lastActive >= addDays(today, -1);
