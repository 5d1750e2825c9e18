import { expect, test } from "vitest";
import { apiPath, settingsOf } from "./settings";

const of = (address: string) => settingsOf(new URL(address, "http://127.0.0.1"));

test("the address says what is shown, below any path", () => {
  expect(of("/games/embed/acme/arcade?period=daily&group=country%3DBR&limit=5&theme=dark#key=lk_x")).toEqual({
    project: "acme",
    board: "arcade",
    key: "lk_x",
    period: "daily",
    slot: "",
    group: "country=BR",
    limit: 5,
    theme: "dark",
  });
});

test("missing and wrong values have defaults", () => {
  const { limit, theme, key } = of("/embed/acme/arcade?limit=many&theme=pink");
  expect([limit, theme, key]).toEqual([10, "auto", ""]);
  expect(of("/embed/acme/arcade?limit=100000").limit).toBe(100);
  expect(of("/embed/acme/arcade?limit=-4").limit).toBe(1);
});

test("the API is asked for the same", () => {
  expect(apiPath(of("/embed/acme/arcade?group=country%3DBR&limit=3"), "live")).toBe("v1/projects/acme/boards/arcade/live?group=country%3DBR&limit=3");
});
