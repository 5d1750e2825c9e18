/** An error of the API (RFC 9457), or of the browser if there was no answer. */

export interface FieldError {
  readonly field: string;
  readonly detail: string;
}

/** What a change would drop of one window. */
export interface Drop {
  readonly window: string;
  readonly entries: number;
  readonly snapshots: number;
}

export class Problem extends Error {
  /** The HTTP status; 0 without an answer. */
  readonly status: number;
  readonly title: string;
  readonly errors: readonly FieldError[];
  /** What a change that needs consent would drop. */
  readonly drops: readonly Drop[];

  constructor(status: number, title: string, detail: string, errors: readonly FieldError[] = [], drops: readonly Drop[] = []) {
    super(detail || title);
    this.name = "Problem";
    this.status = status;
    this.title = title;
    this.errors = errors;
    this.drops = drops;
  }

  get isOffline(): boolean {
    return this.status === 0;
  }

  /** Whether a retry may succeed. */
  get isPassing(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }

  /** The error of one field of a form, or "". */
  of(field: string): string {
    return this.errors.find((error) => error.field === field)?.detail ?? "";
  }
}

export const noAnswer = (): Problem => new Problem(0, "No answer", "Laurels does not answer. Trying again…");

/** From an answer with an error status. */
export function problemOf(status: number, body: unknown): Problem {
  const said = (typeof body === "object" && body !== null ? body : {}) as Record<string, unknown>;
  const text = (name: string) => (typeof said[name] === "string" ? said[name] : "");
  const errors = Array.isArray(said["errors"]) ? said["errors"].filter(isFieldError) : [];
  const drops = Array.isArray(said["drops"]) ? said["drops"].filter(isDrop) : [];
  return new Problem(status, text("title") || `The server answered ${status}`, text("detail"), errors, drops);
}

function isFieldError(value: unknown): value is FieldError {
  return typeof value === "object" && value !== null && "field" in value && "detail" in value;
}

function isDrop(value: unknown): value is Drop {
  return typeof value === "object" && value !== null && "window" in value && "entries" in value && "snapshots" in value;
}

export const asProblem = (error: unknown): Problem =>
  error instanceof Problem ? error : new Problem(-1, "Something went wrong", error instanceof Error ? error.message : String(error));
