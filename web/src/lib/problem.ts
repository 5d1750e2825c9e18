/** What went wrong, as the API says it (RFC 9457), or as we must when nothing answered. */

export interface FieldError {
  readonly field: string;
  readonly detail: string;
}

/** What a change would take away of one window. */
export interface Drop {
  readonly window: string;
  readonly entries: number;
  readonly snapshots: number;
}

export class Problem extends Error {
  /** HTTP's; 0 when there was no answer. */
  readonly status: number;
  readonly title: string;
  readonly errors: readonly FieldError[];
  /** Of a change that waits to be allowed: what it would drop. */
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

  /** Whether it may go away by itself. */
  get isPassing(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }

  /** What is said of one field of a form, or nothing. */
  of(field: string): string {
    return this.errors.find((error) => error.field === field)?.detail ?? "";
  }
}

export const noAnswer = (): Problem => new Problem(0, "No answer", "Laurels does not answer. It is asked again until it does.");

/** Of an answer that is not good. */
export function problemOf(status: number, body: unknown): Problem {
  const said = (typeof body === "object" && body !== null ? body : {}) as Record<string, unknown>;
  const text = (name: string) => (typeof said[name] === "string" ? said[name] : "");
  const errors = Array.isArray(said["errors"]) ? said["errors"].filter(isFieldError) : [];
  const drops = Array.isArray(said["drops"]) ? said["drops"].filter(isDrop) : [];
  return new Problem(status, text("title") || `The answer was ${status}`, text("detail"), errors, drops);
}

function isFieldError(value: unknown): value is FieldError {
  return typeof value === "object" && value !== null && "field" in value && "detail" in value;
}

function isDrop(value: unknown): value is Drop {
  return typeof value === "object" && value !== null && "window" in value && "entries" in value && "snapshots" in value;
}

export const asProblem = (error: unknown): Problem =>
  error instanceof Problem ? error : new Problem(-1, "Something went wrong", error instanceof Error ? error.message : String(error));
