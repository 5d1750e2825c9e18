import { describe, expect, test } from "vitest";
import { Before, changed } from "./top";

const entry = (rank: number, member: string, score: number) => ({ rank, member, score });
const moved = (rank: number, member: string, score: number, previous_rank: number | null) => ({ rank, member, score, previous_rank });

describe("a change", () => {
  test("moves, adds and takes out entries", () => {
    const before = [entry(1, "ada", 30), entry(2, "bob", 20), entry(3, "eve", 10)];
    const change = { total: 9, entries: [moved(1, "zoe", 40, null), moved(2, "ada", 30, 1), moved(3, "bob", 20, 2)], left: ["eve"] };
    expect(changed(before, change, "desc")).toEqual([entry(1, "zoe", 40), entry(2, "ada", 30), entry(3, "bob", 20)]);
  });

  test("lists equal ranks as the server does: by bytes, not by letters", () => {
    const before = [entry(1, "b", 5), entry(1, "a", 5)];
    const joins = { total: 4, entries: [moved(1, "é", 5, null), moved(1, "z", 5, null)], left: [] };
    expect(changed(before, joins, "desc").map((each) => each.member)).toEqual(["é", "z", "b", "a"]);
    expect(changed(before, joins, "asc").map((each) => each.member)).toEqual(["a", "b", "z", "é"]);
    const long = { total: 2, entries: [moved(1, "aa", 5, null)], left: ["b"] };
    expect(changed(before, long, "asc").map((each) => each.member)).toEqual(["a", "aa"]);
  });
});

test("a member's gain follows it to another rank", () => {
  const before = new Before();
  before.hear([{ ...entry(3, "ada", 1), change: 2 }, { ...entry(4, "new", 1), change: null }, entry(5, "old", 1)]);
  expect(before.gained(entry(3, "ada", 1))).toBe(2);
  expect(before.gained(entry(1, "ada", 9))).toBe(4);
  expect(before.gained(entry(7, "ada", 0))).toBe(-2);
  expect(before.gained(entry(1, "new", 9))).toBeNull();
  expect(before.gained(entry(1, "old", 9))).toBeNull();
  expect(before.gained(entry(1, "bob", 9))).toBeUndefined();
  before.clear();
  expect(before.gained(entry(3, "ada", 1))).toBeUndefined();
});
