import { describe, expect, test } from "vitest";
import { asked, chosen, cutText, cutWords, friendsText, knownValues, labelOf, parseCut, parseFriends, slotChoices, typedCut, typedMembers } from "./view";

describe("a choice", () => {
  test("resets what depends on it", () => {
    expect(chosen("period", "weekly")).toEqual({ period: "weekly", slot: "", snapshot: "", rank: "" });
    expect(chosen("member", "ada")).toEqual({ member: "ada" });
  });

  test("that is empty is not requested", () => {
    expect(asked({ period: "daily", slot: "", group: "country=BR" })).toEqual({ period: "daily", group: "country=BR" });
  });
});

test("windows are called by their names", () => {
  expect([{ period: "daily" }, { period: "rolling", days: 7 }, { period: "every", seconds: 60 }, { period: "every", seconds: 60, name: "sprint" }].map(labelOf)).toEqual([
    "daily",
    "rolling_7d",
    "every_60s",
    "sprint",
  ]);
});

describe("groups", () => {
  test("survive the address and back, with any value", () => {
    const cut = [["region", "a,b=c%{d}|:"], ["city", "São\u0085 Paulo"]] as const;
    expect(parseCut(cutText(cut))).toEqual(cut);
    expect(cutText([["city", "São Paulo"]])).toBe("city=São Paulo");
  });

  test("are parsed as typed, in the board's order", () => {
    const groups = [["country"], ["region", "city"]];
    expect(typedCut("country=BR", groups)).toEqual([["country", "BR"]]);
    expect(typedCut(" city = tokyo , region = asia ", groups)).toEqual([
      ["region", "asia"],
      ["city", "tokyo"],
    ]);
    expect(typedCut("planet=mars", groups)).toBeNull();
    expect(typedCut("country=", groups)).toBeNull();
    expect(typedCut("region=asia", groups)).toBeNull();
  });

  test("have words", () => {
    expect(cutWords("country=BR")).toBe("Brazil");
    expect(cutWords("region=asia,city=tokyo")).toBe("asia, tokyo");
    expect(cutWords("country=br")).toBe("br");
  });

  test("have values that are known", () => {
    expect(knownValues("campus", ["north"], ["campus=south", "country=BR", "campus=north"])).toEqual(["north", "south"]);
    expect(knownValues("country", [], ["country=XX", ""]).slice(0, 2)).toEqual(["XX", "AC"]);
  });
});

describe("friends", () => {
  test("are typed on lines, or separated by commas", () => {
    expect(typedMembers("ada, bob,,ada")).toEqual(["ada", "bob"]);
    expect(typedMembers("ada\n  Smith, Jo\n\nbob ")).toEqual(["ada", "Smith, Jo", "bob"]);
    expect(typedMembers("")).toEqual([]);
  });

  test("survive the address and back", () => {
    const members = ["ada", "Smith, Jo", "50%", "é/x"];
    expect(parseFriends(friendsText(members))).toEqual(members);
    expect(parseFriends("")).toEqual([]);
  });
});

test("slots are those of Valkey, then those of the archive", () => {
  const windows = [{ slot: "2025-w43" }, { slot: "2025-w42" }];
  const archived = [{ slot: "2025-w42" }, { slot: "2025-w41" }, { slot: "2025-w41" }, { slot: "" }];
  expect(slotChoices(windows, archived)).toEqual([
    { value: "", label: "Now · 2025-w43" },
    { value: "2025-w42", label: "2025-w42" },
    { value: "2025-w41", label: "2025-w41 · archived" },
  ]);
  expect(slotChoices([{ slot: "" }], [])).toEqual([{ value: "", label: "Now" }]);
});
