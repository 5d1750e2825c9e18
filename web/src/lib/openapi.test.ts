import { describe, expect, test } from "vitest";
import { boundWords, byTag, curl, type Document, exampleOf, requestPath, typeWords } from "./openapi";

const document: Document = {
  info: { title: "Laurels", version: "1" },
  tags: [{ name: "entries", description: "Who stands where." }],
  paths: {
    "/healthz": { get: { operationId: "health", responses: {} } },
    "/boards/{board}/entries": {
      get: {
        operationId: "page",
        tags: ["entries"],
        parameters: [
          { name: "board", in: "path", required: true },
          { name: "limit", in: "query", schema: { type: "integer", minimum: 1, maximum: 1000, default: 100 } },
        ],
        responses: {},
      },
      post: { operationId: "submit", tags: ["entries"], responses: {} },
    },
  },
  components: { schemas: { Entry: { type: "object", properties: { rank: { type: "integer", examples: [1] }, next: { $ref: "#/components/schemas/Entry" } } } } },
};
const described = (id: string) => {
  const found = byTag(document)
    .flatMap((tag) => tag.operations)
    .find((each) => each.id === id);
  if (!found) throw new Error(id);
  return found;
};

test("operations are listed by tag, those without a tag last", () =>
  expect(byTag(document).map((tag) => [tag.name, tag.operations.map((each) => each.id)])).toEqual([
    ["entries", ["page", "submit"]],
    ["", ["health"]],
  ]));

describe("a type in words", () => {
  test.each([
    [{ type: "integer" }, "integer"],
    [{ type: ["string", "null"] }, "string or null"],
    [{ anyOf: [{ $ref: "#/components/schemas/Entry" }, { type: "null" }] }, "Entry or null"],
    [{ type: "array", items: { $ref: "#/components/schemas/Entry" } }, "array of Entry"],
    [{ type: "string", format: "uuid" }, "string (uuid)"],
    [{}, "anything"],
  ])("%j", (schema, words) => expect(typeWords(document, schema)).toBe(words));

  test("with its bounds", () => expect(boundWords({ type: "integer", minimum: 1, maximum: 1000, default: 100 })).toBe("1 to 1000; by default 100"));
});

test("a schema that contains itself has an example", () => {
  const made = exampleOf(document, { schema: { $ref: "#/components/schemas/Entry" } }) as { rank: number; next: { rank: number } };
  expect([made.rank, made.next.rank]).toEqual([1, 1]);
});

test("a filled form is a path: empty values are left out, others escaped", () =>
  expect(requestPath(described("page"), { values: { "path:board": "a/b", "query:limit": "" }, body: "" })).toBe("boards/a%2Fb/entries"));

test("a command can be pasted", () =>
  expect(curl("http://host/x/", described("submit"), { values: { "path:board": "a" }, body: `{"member":"o'neil"}` }, "application/json")).toBe(
    `curl -sS -X POST -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' -d '{"member":"o'\\''neil"}' 'http://host/x/boards/a/entries'`,
  ));
