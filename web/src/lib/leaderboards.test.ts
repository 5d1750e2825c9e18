import { describe, expect, test } from "vitest";
import { asPeriod, asScope, badgeWords, isAlive, pageOf, tally } from "./leaderboards";

describe("what an address asks for", () => {
  test("is used if it exists", () => {
    expect(asScope("social")).toBe("social");
    expect(asPeriod("monthly")).toBe("monthly");
  });

  test("is the default if it does not", () => {
    expect(asScope("wealth")).toBe("overall");
    expect(asPeriod("")).toBe("daily");
  });
});

test("a row is on the page that begins at most fifty before it", () => {
  expect([0, 49, 50, 120].map(pageOf)).toEqual([0, 0, 50, 100]);
});

describe("badges", () => {
  test("are counted by kind, the newest first", () => {
    const badges = [
      { kind: "daily_top10", earned_ymd: 20251020 },
      { kind: "streak_30", earned_ymd: 20251022 },
      { kind: "daily_top10", earned_ymd: 20251021 },
    ];
    expect(tally(badges)).toEqual([
      { kind: "streak_30", times: 1, last: 20251022 },
      { kind: "daily_top10", times: 2, last: 20251021 },
    ]);
  });

  test("of an unknown kind keep their name", () => expect(badgeWords("night_owl").title).toBe("night owl"));
});

test("a streak lives until a whole day was missed", () => {
  expect(isAlive(20251031, 20251101)).toBe(true);
  expect(isAlive(20251101, 20251101)).toBe(true);
  expect(isAlive(20251030, 20251101)).toBe(false);
});
