/** Describes the operations of an OpenAPI document in words. */

export interface Schema {
  $ref?: string;
  type?: string | readonly string[];
  format?: string;
  title?: string;
  description?: string;
  enum?: readonly unknown[];
  const?: unknown;
  default?: unknown;
  examples?: readonly unknown[];
  example?: unknown;
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: readonly string[];
  additionalProperties?: boolean | Schema;
  anyOf?: readonly Schema[];
  oneOf?: readonly Schema[];
  allOf?: readonly Schema[];
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
}

export interface Parameter {
  name: string;
  in: "path" | "query" | "header" | "cookie";
  required?: boolean;
  description?: string;
  schema?: Schema;
  example?: unknown;
}

export interface Media {
  schema?: Schema;
  example?: unknown;
}

export interface Operation {
  operationId?: string;
  summary?: string;
  description?: string;
  tags?: readonly string[];
  parameters?: readonly Parameter[];
  requestBody?: { required?: boolean; content: Record<string, Media> };
  responses: Record<string, { description?: string; content?: Record<string, Media> }>;
}

export interface Document {
  info: { title: string; version: string; description?: string };
  tags?: readonly { name: string; description?: string }[];
  paths: Record<string, Record<string, Operation>>;
  components?: { schemas?: Record<string, Schema> };
}

export interface Described {
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

const METHODS = ["get", "put", "post", "delete", "patch", "head", "options"];

/** Every operation, under the tags in the document's order; those without a tag last. */
export function byTag(document: Document): { name: string; description: string; operations: Described[] }[] {
  const all = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([method]) => METHODS.includes(method))
      .map(([method, operation]) => ({ id: operation.operationId ?? `${method} ${path}`, method: method.toUpperCase(), path, operation })),
  );
  const named = document.tags ?? [];
  const known = new Set(named.map((tag) => tag.name));
  const others = [...new Set(all.map(({ operation }) => operation.tags?.[0] ?? ""))].filter((name) => !known.has(name));
  return [...named, ...others.map((name) => ({ name, description: "" }))]
    .map(({ name, description = "" }) => ({ name, description, operations: all.filter(({ operation }) => (operation.tags?.[0] ?? "") === name) }))
    .filter((tag) => tag.operations.length);
}

/** Resolves a reference; fields beside it win. */
export function resolved(document: Document, schema: Schema): Schema {
  const name = schema.$ref?.match(/^#\/components\/schemas\/(.+)$/)?.[1];
  if (!name) return schema;
  const { $ref: _, ...beside } = schema;
  return { title: name, ...document.components?.schemas?.[name], ...beside };
}

/** The type in words: "string", "integer or null", "array of Entry". */
export function typeWords(document: Document, given: Schema): string {
  const name = given.$ref?.split("/").at(-1);
  if (name) return name;
  const several = given.anyOf ?? given.oneOf;
  if (several) return [...new Set(several.map((each) => typeWords(document, each)))].join(" or ");
  if (given.allOf?.length === 1 && given.allOf[0]) return typeWords(document, given.allOf[0]);
  if (given.const !== undefined) return JSON.stringify(given.const);
  const types = typeof given.type === "string" ? [given.type] : (given.type ?? []);
  if (types.includes("array") && given.items) return `array of ${typeWords(document, given.items)}`;
  const words = types.join(" or ") || "anything";
  return given.format ? `${words} (${given.format})` : words;
}

/** The bounds of a value, and its default: "1 to 1000, by default 100". */
export function boundWords(schema: Schema): string {
  const said: string[] = [];
  const [least, most] = [schema.minimum ?? schema.minLength ?? schema.minItems, schema.maximum ?? schema.maxLength ?? schema.maxItems];
  const unit = schema.minLength !== undefined || schema.maxLength !== undefined ? " characters" : "";
  if (least !== undefined && most !== undefined) said.push(`${least} to ${most}${unit}`);
  else if (least !== undefined) said.push(`at least ${least}${unit}`);
  else if (most !== undefined) said.push(`at most ${most}${unit}`);
  if (schema.enum) said.push(schema.enum.map((value) => JSON.stringify(value)).join(", "));
  if (schema.default !== undefined && schema.default !== null) said.push(`by default ${JSON.stringify(schema.default)}`);
  return said.join("; ");
}

/** A valid value, from the document's examples. */
export function exampleOf(document: Document, media: Media | undefined): unknown {
  if (!media) return undefined;
  return media.example ?? (media.schema && exampleOfSchema(document, media.schema, 0));
}

const DEEPEST = 5;

function exampleOfSchema(document: Document, given: Schema, depth: number): unknown {
  const schema = resolved(document, given);
  const told = schema.example ?? schema.examples?.[0] ?? schema.const ?? schema.default ?? schema.enum?.[0];
  if (told !== undefined || depth > DEEPEST) return told;
  const one = schema.anyOf?.[0] ?? schema.oneOf?.[0] ?? schema.allOf?.[0];
  if (one) return exampleOfSchema(document, one, depth + 1);
  const type = typeof schema.type === "string" ? schema.type : schema.type?.[0];
  if (type === "array") return schema.items ? [exampleOfSchema(document, schema.items, depth + 1)] : [];
  if (type === "object" || schema.properties) {
    return Object.fromEntries(Object.entries(schema.properties ?? {}).map(([name, each]) => [name, exampleOfSchema(document, each, depth + 1)]));
  }
  return { string: "", integer: 0, number: 0, boolean: false, null: null }[type ?? ""] ?? null;
}

export interface Filled {
  /** By `in:name`. */
  readonly values: Readonly<Record<string, string>>;
  readonly body: string;
}

/** The path and query of a filled form, relative to the root. */
export function requestPath({ path, operation }: Described, { values }: Filled): string {
  const filled = path.replaceAll(/\{([^}]+)\}/g, (_, name: string) => encodeURIComponent(values[`path:${name}`] ?? ""));
  const pairs = (operation.parameters ?? []).filter((each) => each.in === "query" && values[`query:${each.name}`]);
  const query = new URLSearchParams(pairs.map((each) => [each.name, values[`query:${each.name}`] ?? ""])).toString();
  return filled.slice(1) + (query ? `?${query}` : "");
}

/** The request as a curl command. */
export function curl(root: string, described: Described, filled: Filled, mediaType: string | undefined): string {
  const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;
  const parts = ["curl -sS"];
  if (described.method !== "GET") parts.push(`-X ${described.method}`);
  parts.push('-H "Authorization: Bearer $KEY"');
  if (mediaType && filled.body) parts.push(`-H 'Content-Type: ${mediaType}'`, `-d ${quoted(filled.body)}`);
  parts.push(quoted(new URL(requestPath(described, filled), root).href));
  return parts.join(" ");
}
