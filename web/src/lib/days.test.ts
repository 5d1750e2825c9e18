import { describe, expect, test } from "vitest";
import { addDays, daysBetween, isoDay, parseDay, todayIn, weekday, weeksUpTo } from "./days";

describe("days", () => {
  test.each([
    [20251031, 1, 20251101],
    [20251101, -1, 20251031],
    [20241231, 1, 20250101],
    [20240228, 1, 20240229],
    [20250330, 1, 20250331], // clocks change in Europe, days do not
  ])("%i and %i days are %i", (ymd, days, then) => expect(addDays(ymd, days)).toBe(then));

  test("the days between are counted by the calendar", () => {
    expect(daysBetween(20251024, 20251101)).toBe(8);
    expect(daysBetween(20251101, 20251024)).toBe(-8);
  });

  test("a day goes into an address and comes back", () => expect(parseDay(isoDay(20251024))).toBe(20251024));

  test.each(["", "2025-02-30", "2025-13-01", "20251024", "yesterday"])("%s is no day", (text) => expect(parseDay(text)).toBeNull());

  test("weeks begin on Monday", () => {
    expect(weekday(20251020)).toBe(0);
    expect(weekday(20251026)).toBe(6);
  });

  test("today depends on the timezone", () => {
    const now = Date.parse("2025-10-24T12:00:00Z");
    expect(todayIn("Pacific/Auckland", now)).toBe(20251025);
    expect(todayIn("America/Los_Angeles", now)).toBe(20251024);
  });

  test("a calendar begins on a Monday, ends today, and knows the active days", () => {
    const weeks = weeksUpTo(20251022, 3, new Set([20251006, 20251022, 20251101]));
    expect(weeks.map((week) => week.length)).toEqual([7, 7, 3]);
    expect(weeks[0]?.[0]).toEqual({ ymd: 20251006, isActive: true });
    expect(weeks.at(-1)?.at(-1)).toEqual({ ymd: 20251022, isActive: true });
    expect(weeks.flat().filter((day) => day.isActive)).toHaveLength(2);
  });
});
