/** The API, typed by its own OpenAPI document: `await ask(api.GET("/v1/projects", { signal }))`. */
import createClient, { type Client, type Middleware } from "openapi-fetch";
import { access, forget, type Kind } from "./access";
import type { components, paths } from "./api";
import { noteDate } from "./clock";
import { noAnswer, type Problem, problemOf } from "./problem";
import { noteReachable } from "./reach";

export type Schemas = components["schemas"];

const TIMEOUT = 15_000; // milliseconds

const listening: Middleware = {
  onResponse({ response }) {
    noteDate(response.headers.get("Date"));
    noteReachable(true);
  },
};

/** Sends the first of these that we have; forgets a credential that is refused. */
const authorized = (kinds: readonly Kind[]): Middleware => ({
  onRequest({ request }) {
    const kind = kinds.find((kind) => access(kind));
    if (kind) request.headers.set("Authorization", `Bearer ${access(kind)}`);
    return request;
  },
  onResponse({ request, response }) {
    if (response.status !== 401) return;
    const sent = request.headers.get("Authorization");
    for (const kind of kinds) if (sent === `Bearer ${access(kind)}`) forget(kind);
  },
});

const baseUrl = typeof document === "undefined" ? "" : document.baseURI.replace(/\/$/, "");

async function fetchWithTimeout(request: Request): Promise<Response> {
  try {
    return await fetch(new Request(request, { signal: AbortSignal.any([request.signal, AbortSignal.timeout(TIMEOUT)]) }));
  } catch (error) {
    if (request.signal.aborted) throw error;
    noteReachable(false);
    throw noAnswer();
  }
}

export function clientOf(...middleware: Middleware[]): Client<paths> {
  const client = createClient<paths>({ baseUrl, fetch: fetchWithTimeout });
  client.use(listening, ...middleware);
  return client;
}

/** With the key. */
export const api = clientOf(authorized(["key"]));
/** With the player's token if there is one, else with the key. */
export const playerApi = clientOf(authorized(["token", "key"]));

interface Answered<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** The answer's body; throws a `Problem` for an error status. */
export async function ask<T>(answered: Promise<Answered<T>>): Promise<T> {
  const { data, error, response } = await answered;
  if (!response.ok) throw problemOf(response.status, error) satisfies Problem;
  return data as T;
}
