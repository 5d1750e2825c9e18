import { describe, expect, test } from "vitest";
import { extent, pathThrough, scale, ticks } from "./plotting";

test("a domain of one value is drawn in the middle", () => expect(scale([5, 5], [0, 100])(5)).toBe(50));

test("ranks are drawn with the first on top", () => {
  const y = scale([1, 100], [10, 200]);
  expect(y(1)).toBeLessThan(y(100));
});

describe("ticks", () => {
  test("are round and within the domain", () => expect(ticks([0, 87])).toEqual([0, 50]));
  test("of small numbers are exact", () => expect(ticks([0, 0.3], 3)).toEqual([0, 0.1, 0.2, 0.3]));
  test("of one value are that value", () => expect(ticks([7, 7])).toEqual([7]));
});

test("a line has a gap where values are unknown", () =>
  expect(pathThrough([{ x: 0, y: 1 }, { x: 1, y: 2 }, null, { x: 3, y: 4 }])).toBe("M0 1L1 2M3 4"));

test("no values have an extent, too", () => expect(extent([])).toEqual([0, 0]));
