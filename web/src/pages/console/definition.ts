/** Converts a board's definition into a form's texts and ticks, and back. The server validates it. */
import type { Schemas } from "../../lib/client";
import type { FieldError } from "../../lib/problem";

export type Definition = Partial<Schemas["BoardDefinition"]>;

export interface WindowDraft {
  period: string;
  name: string;
  keep: string;
  sum_of: string;
  days: string;
  seconds: string;
}

export interface SnapshotDraft {
  period: string;
  top: string;
  everyDay: boolean;
}

export interface Draft {
  aggregate: string;
  order: string;
  score: string;
  ties: string;
  allow_op: boolean;
  dense: boolean;
  player_writes: boolean;
  windows: WindowDraft[];
  timezone: string;
  timezone_by: string;
  /** `value = zone`, one per line. */
  timezones: string;
  /** Dimensions separated by commas, one group per line. */
  groups: string;
  /** One board per line. */
  feeds: string;
  lateness: string;
  journal: boolean;
  snapshots: SnapshotDraft[];
  min: string;
  max: string;
  max_change: string;
  shards: string;
  /** `window = template`, one per line. */
  keys: string;
  adopt: boolean;
  /** The system, or empty. */
  rating: string;
  /** Its constants: `name = value`, one per line. */
  constants: string;
}

export const newWindow = (period: string): WindowDraft => ({ period, name: "", keep: "", sum_of: "", days: "", seconds: "" });

interface Labelled {
  period: string;
  name?: string | null;
  days?: string | number | null;
  seconds?: string | number | null;
}

/** The name for `period=`. */
export function labelOf(window: Labelled): string {
  if (window.name) return window.name;
  if (window.period === "rolling") return `rolling_${window.days}d`;
  if (window.period === "every") return `every_${window.seconds}s`;
  return window.period;
}

const text = (value: unknown): string => (value === null || value === undefined ? "" : String(value));
const pairsText = (pairs: object): string =>
  Object.entries(pairs)
    .map(([name, value]) => `${name} = ${text(value)}`)
    .join("\n");

export function draftOf(definition: Definition): Draft {
  const { system = "", ...constants } = (definition.rating ?? {}) as { system?: string };
  return {
    aggregate: definition.aggregate ?? "best",
    order: definition.order ?? "desc",
    score: definition.score ?? "number",
    ties: definition.ties ?? "shared",
    allow_op: definition.allow_op ?? false,
    dense: definition.dense ?? false,
    player_writes: definition.player_writes ?? false,
    windows: (definition.windows ?? [{ period: "all_time" as const }]).map((window) => ({
      period: window.period,
      name: text(window.name),
      keep: text(window.keep),
      sum_of: text(window.sum_of),
      days: text(window.days),
      seconds: text(window.seconds),
    })),
    timezone: definition.timezone ?? "UTC",
    timezone_by: text(definition.timezone_by),
    timezones: pairsText(definition.timezones ?? {}),
    groups: (definition.groups ?? []).map((group) => group.join(", ")).join("\n"),
    feeds: (definition.feeds ?? []).join("\n"),
    lateness: definition.lateness ?? "P1D",
    journal: definition.archive?.journal ?? true,
    snapshots: (definition.archive?.snapshot ?? []).map((snapshot) => ({
      period: snapshot.period,
      top: text(snapshot.top),
      everyDay: snapshot.every === "day",
    })),
    min: text(definition.limits?.min),
    max: text(definition.limits?.max),
    max_change: text(definition.limits?.max_change),
    shards: text(definition.shards ?? 1),
    keys: pairsText(definition.keys ?? {}),
    adopt: definition.adopt ?? false,
    rating: system,
    constants: pairsText(constants),
  };
}

const lines = (value: string): string[] =>
  value
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);

/** A number if it is one; else the text, so that the server reports it. */
const number = (value: string): number | string => (value.trim() !== "" && Number.isFinite(Number(value)) ? Number(value) : value.trim());

/** The definition without defaults, and errors of values that cannot be sent. */
export function definitionOf(draft: Draft): { definition: Definition; errors: FieldError[] } {
  const errors: FieldError[] = [];
  const pairs = (field: string, value: string): [string, string][] =>
    lines(value).flatMap((line) => {
      const at = line.indexOf("=");
      if (at < 1) {
        errors.push({ field, detail: `write “${line}” as name = value` });
        return [];
      }
      return [[line.slice(0, at).trim(), line.slice(at + 1).trim()]];
    });
  const limit = (field: "min" | "max" | "max_change") => {
    const value = number(draft[field]);
    if (typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value)) {
      errors.push({ field: `limits.${field}`, detail: "a browser rounds numbers beyond 2^53: define it with `laurels apply`" });
    }
    return value;
  };

  const made: Record<string, unknown> = {};
  const set = (name: string, value: unknown, isDefault: boolean) => {
    if (!isDefault) made[name] = value;
  };
  set("aggregate", draft.aggregate, draft.aggregate === "best" && !draft.rating);
  set("order", draft.order, draft.order === "desc");
  set("score", draft.score, draft.score === "number");
  set("ties", draft.ties, draft.ties === "shared");
  set("allow_op", true, !draft.allow_op);
  set("dense", true, !draft.dense);
  set("player_writes", true, !draft.player_writes);
  made["windows"] = draft.windows.map((window) => {
    const kept: Record<string, unknown> = { period: window.period };
    if (window.keep.trim()) kept["keep"] = number(window.keep);
    if (window.name.trim()) kept["name"] = window.name.trim();
    if (window.sum_of.trim()) kept["sum_of"] = window.sum_of.trim();
    if (window.period === "rolling" && window.days.trim()) kept["days"] = number(window.days);
    if (window.period === "every" && window.seconds.trim()) kept["seconds"] = number(window.seconds);
    return kept;
  });
  set("timezone", draft.timezone.trim(), draft.timezone.trim() === "UTC");
  set("timezone_by", draft.timezone_by.trim(), !draft.timezone_by.trim());
  const timezones = pairs("timezones", draft.timezones);
  set("timezones", Object.fromEntries(timezones), !timezones.length);
  const groups = lines(draft.groups).map((line) =>
    line
      .split(",")
      .map((name) => name.trim())
      .filter(Boolean),
  );
  set("groups", groups, !groups.length);
  set("feeds", lines(draft.feeds), !lines(draft.feeds).length);
  set("lateness", draft.lateness.trim(), draft.lateness.trim() === "P1D");
  const snapshots = draft.snapshots.map((snapshot) => ({
    period: snapshot.period,
    ...(snapshot.top.trim() ? { top: number(snapshot.top) } : {}),
    ...(snapshot.everyDay ? { every: "day" } : {}),
  }));
  set("archive", { journal: draft.journal, snapshot: snapshots }, draft.journal && !snapshots.length);
  const limits = Object.fromEntries(
    (["min", "max", "max_change"] as const).flatMap((field) => (draft[field].trim() ? [[field, limit(field)]] : [])),
  );
  set("limits", limits, !Object.keys(limits).length);
  set("shards", number(draft.shards), draft.shards.trim() === "1");
  const keys = pairs("keys", draft.keys);
  set("keys", Object.fromEntries(keys), !keys.length);
  set("adopt", true, !draft.adopt);
  if (draft.rating) {
    const constants = pairs("rating", draft.constants).map(([name, value]) => [name, value === "true" ? true : value === "false" ? false : number(value)]);
    made["rating"] = { system: draft.rating, ...Object.fromEntries(constants) };
    if (draft.aggregate === "best") delete made["aggregate"]; // the server's default for ratings is last
  }
  return { definition: made as Definition, errors };
}

/** The error of one field. */
export const wrongAt = (errors: readonly FieldError[], field: string): string | undefined =>
  errors
    .filter((error) => error.field === field)
    .map((error) => error.detail)
    .join("; ") || undefined;

/** The errors of a field and everything within it, with their places. */
export const wrongWithin = (errors: readonly FieldError[], field: string): string | undefined =>
  errors
    .filter((error) => error.field === field || error.field.startsWith(`${field}.`) || error.field.startsWith(`${field}[`))
    .map((error) => (error.field === field ? error.detail : `${error.field}: ${error.detail}`))
    .join("; ") || undefined;
