/** The session. Scripts cannot read its cookie; the server says what it stands for. */
import type { Middleware } from "openapi-fetch";
import { useSyncExternalStore } from "react";
import { ask, clientOf, type Schemas } from "../../lib/client";
import { Problem } from "../../lib/problem";

export type Session = Schemas["Session"];

interface State {
  /** Undefined until the server answered; null while signed out. */
  session: Session | null | undefined;
  /** Why the session ended. */
  why: string;
}

let state: State = { session: undefined, why: "" };
const listeners = new Set<() => void>();

function change(to: State): void {
  state = to;
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export const useSession = (): State => useSyncExternalStore(subscribe, () => state);

/** Adds the header that the server requires of our pages, and ends the session on 401, except for a missing signature. */
const asConsole: Middleware = {
  onRequest({ request }) {
    request.headers.set("X-Laurels-Console", "1");
    return request;
  },
  async onResponse({ response }) {
    if (response.status !== 401 || !state.session) return;
    const said = (await response.clone().json().catch(() => ({}))) as { type?: string };
    if (said.type === "/problems/unauthorized") {
      change({ session: null, why: "The session is over: it timed out, or its key was revoked. Sign in again." });
    }
  },
};

/** The API with the session. */
export const consoleApi = clientOf(asConsole);

export async function findSession(signal?: AbortSignal): Promise<void> {
  const session = await ask<Session | undefined>(consoleApi.GET("/console/session", { signal: signal ?? null }));
  change({ session: session ?? null, why: state.why });
}

/** The error of the key, or "". */
export async function signIn(key: string): Promise<string> {
  try {
    const body = { key } as never; // the document has this schema inline
    change({ session: await ask<Session>(consoleApi.POST("/console/session", { body })), why: "" });
    return "";
  } catch (error) {
    if (error instanceof Problem && [401, 403, 422].includes(error.status)) return error.message;
    throw error;
  }
}

export async function signOut(): Promise<void> {
  await ask(consoleApi.DELETE("/console/session"));
  change({ session: null, why: "" });
}

/** Whether the session may see the whole deployment. */
export const isOperator = (session: Session): boolean => session.project === "*";
