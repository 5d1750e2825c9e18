import { describe, expect, test } from "vitest";
import { addressOf, parseAddress } from "./address";

describe("addresses", () => {
  test("are read below the root, wherever that is", () => {
    const address = parseAddress(new URL("https://example.test/scores/boards/demo/a%2Fb?period=daily"), "/scores/");
    expect(address.path).toEqual(["boards", "demo", "a/b"]);
    expect(address.query.get("period")).toBe("daily");
  });

  test("leave out what is empty", () =>
    expect(addressOf(["boards", "a/b"], { period: "daily", slot: "", rank: undefined, limit: 50 })).toBe("boards/a%2Fb?period=daily&limit=50"));

  test("that are broken are read unchanged", () => {
    expect(parseAddress(new URL("https://example.test/boards/%E0%A4%A"), "/").path).toEqual(["boards", "%E0%A4%A"]);
  });
});
