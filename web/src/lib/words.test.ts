import { expect, test } from "vitest";
import { ago, counted, readable, score, timeLeft } from "./words";

test("an int64 keeps all of its digits", () => expect(score("9007199254740993").replaceAll(/\D/g, "")).toBe("9007199254740993"));

test("numbers agree with their nouns", () => {
  expect(counted(1, "entry", "entries")).toBe("1 entry");
  expect(counted(0, "entry", "entries")).toBe("0 entries");
});

test("names are made readable", () => expect(readable("all_time")).toBe("All time"));

test.each([
  [59_000, "00:00:59"],
  [3_600_000, "01:00:00"],
  [86_400_000 * 2 + 61_000, "2 d 00:01:01"],
  [-5, "00:00:00"],
])("%i milliseconds are %s", (milliseconds, text) => expect(timeLeft(milliseconds)).toBe(text));

test("times are relative, in their largest unit", () => {
  const now = Date.parse("2025-10-24T12:00:00Z");
  expect(ago("2025-10-24T09:59:00Z", now)).toMatch(/2 hours ago/);
});
