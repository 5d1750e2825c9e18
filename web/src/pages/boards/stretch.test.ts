import { describe, expect, test } from "vitest";
import { drawn, firstToSee, MOST_ROWS, rowAfter, stretchAround } from "./stretch";

const MILLION = 1_000_000;

describe("a stretch", () => {
  test("is all of a table that is not too long", () => {
    expect(stretchAround(17, 20_000)).toEqual({ start: 0, end: 20_000 });
    expect(stretchAround(0, MOST_ROWS)).toEqual({ start: 0, end: MOST_ROWS });
  });

  test("surrounds the row, and never exceeds the table", () => {
    expect(stretchAround(500_000, MILLION)).toEqual({ start: 450_000, end: 550_000 });
    expect(stretchAround(0, MILLION)).toEqual({ start: 0, end: 100_000 });
    expect(stretchAround(MILLION - 1, MILLION)).toEqual({ start: 900_000, end: MILLION });
  });

  test("stays until the row comes near its end", () => {
    const held = { start: 450_000, end: 550_000 };
    expect(stretchAround(530_000, MILLION, held)).toBe(held);
    expect(stretchAround(541_000, MILLION, held)).toEqual({ start: 491_000, end: 591_000 });
    expect(stretchAround(459_999, MILLION, held)).toEqual({ start: 409_999, end: 509_999 });
    expect(stretchAround(5, MILLION, held)).toEqual({ start: 0, end: 100_000 });
  });

  test("at an end of the table stays there", () => {
    const top = { start: 0, end: 100_000 };
    expect(stretchAround(3, MILLION, top)).toBe(top);
    const bottom = { start: 900_000, end: MILLION };
    expect(stretchAround(MILLION - 1, MILLION, bottom)).toBe(bottom);
  });

  test("moves when the table became shorter", () => {
    expect(stretchAround(940_000, 950_000, { start: 900_000, end: MILLION })).toEqual({ start: 850_000, end: 950_000 });
  });
});

test("rows are drawn a little beyond the view, within the stretch", () => {
  expect(drawn(100, 20, { start: 0, end: 1000 })).toEqual({ start: 88, end: 132 });
  expect(drawn(0, 20, { start: 0, end: 10 })).toEqual({ start: 0, end: 10 });
  expect(drawn(995, 20, { start: 0, end: 1000 })).toEqual({ start: 983, end: 1000 });
});

test("a row comes into view by the shortest scroll", () => {
  expect(firstToSee(5, 10, 20)).toBe(5);
  expect(firstToSee(15, 10, 20)).toBe(10);
  expect(firstToSee(30, 10, 20)).toBe(11);
});

test("keys lead through the rows, and stop at the ends", () => {
  const go = (key: string, index: number) => rowAfter(key, index, 10, 100);
  expect([go("ArrowDown", 5), go("ArrowUp", 5), go("PageDown", 5), go("PageUp", 50)]).toEqual([6, 4, 14, 41]);
  expect([go("Home", 50), go("End", 50), go("ArrowUp", 0), go("PageDown", 98)]).toEqual([0, 99, 0, 99]);
  expect(go("x", 5)).toBeNull();
});
