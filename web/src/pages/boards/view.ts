/** A view of a board: everything that its address says. Pure. */
import { readable } from "../../lib/words";

/** The query of the address, with its defaults. */
export const DEFAULTS = {
  period: "",
  slot: "",
  group: "",
  /** The place on top; without one, the list goes to `member`. */
  rank: "",
  member: "",
  show: "ranking",
  friends: "",
  /** A snapshot of a running window, by its id. */
  snapshot: "",
} as const;

export type View = Record<keyof typeof DEFAULTS, string>;

/** Which entries to read. */
export interface Where {
  readonly period: string;
  readonly slot: string;
  readonly group: string;
}

/** What a new choice resets: another period has other slots. */
const BELOW: Partial<Record<keyof View, readonly (keyof View)[]>> = {
  period: ["slot", "snapshot", "rank"],
  slot: ["snapshot", "rank"],
  snapshot: ["slot", "rank"],
  group: ["snapshot", "rank"],
};

export function chosen(name: keyof View, value: string): Partial<View> {
  const below = (BELOW[name] ?? []).map((below) => [below, ""]);
  return { ...Object.fromEntries(below), [name]: value };
}

/** The parameters that select a window, without empty ones. */
export const asked = ({ period, slot, group }: Where) => ({ ...(period && { period }), ...(slot && { slot }), ...(group && { group }) });

export interface WindowLike {
  readonly period: string;
  readonly name?: string | null;
  readonly days?: number | null;
  readonly seconds?: number | null;
}

/** The name for `period=`. */
export const labelOf = ({ name, period, days, seconds }: WindowLike): string =>
  name ?? { rolling: `rolling_${days}d`, every: `every_${seconds}s` }[period] ?? period;

// ---------------------------------------------------------------- groups: `country=BR`, `region=asia,city=tokyo`

export type Cut = readonly (readonly [dimension: string, value: string])[];

export const parseCut = (group: string): Cut =>
  group
    .split(",")
    .filter(Boolean)
    .map((pair) => {
      const [name = "", ...value] = pair.split("=");
      return [name, unescaped(value.join("="))] as const;
    });

export const cutText = (cut: Cut): string => cut.map(([name, value]) => `${name}=${escaped(value)}`).join(",");

// Escapes what separates names and values, and invisible characters.
const escaped = (value: string): string =>
  value.replace(/[%:=,{}|\p{Cc}]/gu, (c) => [...new TextEncoder().encode(c)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`).join(""));

function unescaped(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

/** The typed group, with its dimensions in the board's order; null if the board has no such group. */
export function typedCut(typed: string, groups: readonly (readonly string[])[]): Cut | null {
  const pairs = parseCut(typed.replace(/\s*([,=])\s*/g, "$1").trim());
  const values = new Map(pairs);
  const dimensions = groups.find((group) => group.length === pairs.length && group.every((name) => values.get(name)));
  return dimensions?.map((name) => [name, values.get(name) ?? ""] as const) ?? null;
}

const countries = new Intl.DisplayNames(undefined, { type: "region", fallback: "none" });

/** "Brazil" for `country` BR; else the value as it is. */
export function valueWords(dimension: string, value: string): string {
  if (dimension !== "country" || !/^[A-Z]{2}$/.test(value)) return value;
  return countries.of(value) ?? value;
}

export const cutWords = (group: string): string =>
  parseCut(group)
    .map(([name, value]) => valueWords(name, value))
    .join(", ");

let allCountries: readonly string[] | undefined; // computed once: there are 676 pairs of letters

function countryCodes(): readonly string[] {
  const letters = [..."ABCDEFGHIJKLMNOPQRSTUVWXYZ"];
  allCountries ??= letters.flatMap((a) => letters.map((b) => a + b)).filter((code) => countries.of(code));
  return allCountries;
}

/** Known values of a dimension: countries, those with their own timezone, and those in snapshots. */
export function knownValues(dimension: string, zones: readonly string[], archived: readonly string[]): string[] {
  const seen = archived.flatMap(parseCut).flatMap(([name, value]) => (name === dimension ? [value] : []));
  return [...new Set([...zones, ...seen, ...(dimension === "country" ? countryCodes() : [])])];
}

// ---------------------------------------------------------------- friends

export const MOST_FRIENDS = 1_000;

/** One per line, or separated by commas on one line. */
export function typedMembers(text: string): string[] {
  const lines = text.includes("\n") ? text.split("\n") : text.split(",");
  return [...new Set(lines.map((line) => line.trim()).filter(Boolean))].slice(0, MOST_FRIENDS);
}

/** As in the address: separated by commas, with commas inside percent-encoded. */
export const friendsText = (members: readonly string[]): string => members.map((member) => member.replace(/[%,]/g, encodeURIComponent)).join(",");

export const parseFriends = (text: string): string[] => [...new Set(text.split(",").filter(Boolean).map(unescaped))].slice(0, MOST_FRIENDS);

// ---------------------------------------------------------------- slots

export interface SlotLike {
  readonly slot: string;
}

export interface SlotChoice {
  readonly value: string;
  readonly label: string;
}

/** The current window, then past ones: in Valkey, then in the archive. */
export function slotChoices(windows: readonly SlotLike[], archived: readonly SlotLike[]): SlotChoice[] {
  const [current, ...past] = windows.map((window) => window.slot);
  const known = new Set([current, ...past]);
  const older = [...new Set(archived.map((snapshot) => snapshot.slot))].filter((slot) => slot && !known.has(slot));
  return [
    { value: "", label: current ? `Now · ${current}` : "Now" },
    ...past.map((slot) => ({ value: slot, label: slot })),
    ...older.map((slot) => ({ value: slot, label: `${slot} · archived` })),
  ];
}

/** "daily 2025-10-24". */
export const windowWords = (period: string, slot: string): string => [readable(period).toLowerCase(), slot].filter(Boolean).join(" ");
