/** What a view of a board is: everything in its address. Pure. */
import { readable } from "../../lib/words";

/** What the address says besides project and board, and what it means where it is silent. */
export const DEFAULTS = {
  period: "",
  slot: "",
  group: "",
  /** The place that is on top; silent beside a `member`, the member is looked for. */
  rank: "",
  member: "",
  show: "ranking",
  friends: "",
  /** An archived picture of a window that goes on, by its id. */
  snapshot: "",
} as const;

export type View = Record<keyof typeof DEFAULTS, string>;

/** Which entries are asked for. */
export interface Where {
  readonly period: string;
  readonly slot: string;
  readonly group: string;
}

/** What begins anew when a choice changes: another period has other slots. */
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

/** The parameters of a question about a window, without those that are silent. */
export const asked = ({ period, slot, group }: Where) => ({ ...(period && { period }), ...(slot && { slot }), ...(group && { group }) });

export interface WindowLike {
  readonly period: string;
  readonly name?: string | null;
  readonly days?: number | null;
  readonly seconds?: number | null;
}

/** What `period=` asks for. */
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

// Visible ones are what parts names and values; the others cannot be seen.
const escaped = (value: string): string =>
  value.replace(/[%:=,{}|\p{Cc}]/gu, (c) => [...new TextEncoder().encode(c)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`).join(""));

function unescaped(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

/** The group that somebody typed, in the board's order of its dimensions; null if the board has no such group. */
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

let allCountries: readonly string[] | undefined; // found once: there are 676 pairs of letters to ask about

function countryCodes(): readonly string[] {
  const letters = [..."ABCDEFGHIJKLMNOPQRSTUVWXYZ"];
  allCountries ??= letters.flatMap((a) => letters.map((b) => a + b)).filter((code) => countries.of(code));
  return allCountries;
}

/** Values of a dimension that can be known: countries, those with a clock of their own, and those in archived tables. */
export function knownValues(dimension: string, zones: readonly string[], archived: readonly string[]): string[] {
  const seen = archived.flatMap(parseCut).flatMap(([name, value]) => (name === dimension ? [value] : []));
  return [...new Set([...zones, ...seen, ...(dimension === "country" ? countryCodes() : [])])];
}

// ---------------------------------------------------------------- friends

export const MOST_FRIENDS = 1_000;

/** One on each line; or, on one line, with commas between. */
export function typedMembers(text: string): string[] {
  const lines = text.includes("\n") ? text.split("\n") : text.split(",");
  return [...new Set(lines.map((line) => line.trim()).filter(Boolean))].slice(0, MOST_FRIENDS);
}

/** As the address has them: commas between, those inside percent-encoded. */
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

/** The window that goes on, then those that ended: in Valkey, and then in the archive. */
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
