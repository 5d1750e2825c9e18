import { describe, expect, it } from "vitest";
import { type Definition, definitionOf, draftOf, labelOf, newWindow, wrongAt, wrongWithin } from "./definition";

const FULL: Definition = {
  aggregate: "sum",
  order: "asc",
  score: "int64",
  ties: "earliest",
  allow_op: true,
  dense: true,
  player_writes: true,
  windows: [
    { period: "daily", keep: 30 },
    { period: "weekly", keep: "P90D", sum_of: "daily" },
    { period: "rolling", days: 7, name: "last_week" },
    { period: "every", seconds: 3600 },
  ],
  timezone: "Asia/Tokyo",
  timezone_by: "campus",
  timezones: { kyoto: "Asia/Tokyo", cairo: "Africa/Cairo" },
  groups: [["campus"], ["region", "city"]],
  feeds: ["global/score"],
  lateness: "PT6H",
  archive: { journal: false, snapshot: [{ period: "weekly", top: 100 }, { period: "daily", every: "day" }] },
  limits: { min: 0, max: 1e6, max_change: 2.5 },
  shards: 4,
  keys: { daily: "lb:{board}:{slot}", "daily:campus": "lb:{board}:{slot}:{group.campus}" },
  adopt: true,
};

describe("a definition in a form", () => {
  it("comes back as it was", () => {
    expect(definitionOf(draftOf(FULL))).toEqual({ definition: FULL, errors: [] });
  });

  it("leaves out what is default", () => {
    expect(definitionOf(draftOf({})).definition).toEqual({ windows: [{ period: "all_time" }] });
  });

  it("keeps a rating and its constants", () => {
    const rated: Definition = { aggregate: "last", rating: { system: "elo", k: 24, initial: 1200, provisional: 5, rank_provisional: false }, windows: [{ period: "all_time" }] };
    expect(definitionOf(draftOf(rated)).definition).toEqual(rated);
    expect(definitionOf({ ...draftOf({}), rating: "elo" }).definition).toEqual({ rating: { system: "elo" }, windows: [{ period: "all_time" }] });
  });

  it("sends a wrong number as typed, so that the server reports it", () => {
    const draft = { ...draftOf({}), shards: "many", min: "low" };
    draft.windows = [{ ...newWindow("rolling"), days: "a week", keep: "P30D" }];
    expect(definitionOf(draft).definition).toMatchObject({ shards: "many", limits: { min: "low" }, windows: [{ period: "rolling", days: "a week", keep: "P30D" }] });
  });

  it("refuses what it cannot send", () => {
    const { errors } = definitionOf({ ...draftOf({}), keys: "daily", max: "9007199254740993" });
    expect(errors.map((error) => error.field)).toEqual(["limits.max", "keys"]);
  });
});

describe("labels", () => {
  it("are the names for period=", () => {
    expect(labelOf(newWindow("daily"))).toBe("daily");
    expect(labelOf({ ...newWindow("rolling"), days: "7" })).toBe("rolling_7d");
    expect(labelOf({ ...newWindow("every"), seconds: "3600" })).toBe("every_3600s");
    expect(labelOf({ ...newWindow("daily"), name: "today" })).toBe("today");
  });
});

describe("an error", () => {
  const errors = [
    { field: "windows[0].keep", detail: "is a number" },
    { field: "groups[1]", detail: "is empty" },
    { field: "groups", detail: "twice" },
    { field: "groupings", detail: "is something else" },
  ];
  it("is shown at its field, or at the field that contains it", () => {
    expect(wrongAt(errors, "windows[0].keep")).toBe("is a number");
    expect(wrongAt(errors, "windows[0]")).toBeUndefined();
    expect(wrongWithin(errors, "groups")).toBe("groups[1]: is empty; twice");
  });
});
