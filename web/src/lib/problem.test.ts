import { describe, expect, test } from "vitest";
import { asProblem, noAnswer, problemOf } from "./problem";

describe("a problem", () => {
  const body = { type: "/problems/invalid", title: "Invalid input", detail: "two fields", errors: [{ field: "windows[0].keep", detail: "above 0" }] };

  test("says what the API said", () => {
    const problem = problemOf(422, body);
    expect([problem.status, problem.title, problem.message]).toEqual([422, "Invalid input", "two fields"]);
  });

  test("has the error of a field", () => {
    expect(problemOf(422, body).of("windows[0].keep")).toBe("above 0");
    expect(problemOf(422, body).of("order")).toBe("");
  });

  test("is made from an answer that is not ours", () => expect(problemOf(502, "<html>").message).toBe("The server answered 502"));

  test("is temporary when the server is away, not when the request is wrong", () => {
    expect(noAnswer().isPassing).toBe(true);
    expect(problemOf(503, {}).isPassing).toBe(true);
    expect(problemOf(404, {}).isPassing).toBe(false);
  });

  test("is made from any error", () => expect(asProblem(new TypeError("no")).message).toBe("no"));
});
