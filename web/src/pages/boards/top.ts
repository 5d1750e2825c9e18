/** The best entries of a window, updated by the live stream. Pure. */
import type { Schemas } from "../../lib/client";

export type Entry = Pick<Schemas["Entry"], "rank" | "member" | "score" | "change" | "person">;
export type Page = Omit<Schemas["Page"], "entries"> & { readonly entries: readonly Entry[] };

/** The data of a `change` event. */
export interface Change {
  readonly total: number;
  readonly entries: readonly (Entry & { readonly previous_rank: number | null })[];
  readonly left: readonly string[];
}

/** Equal ranks are in the server's order: by member, descending if the highest score is best. */
export type TieOrder = "asc" | "desc";

const bytes = new TextEncoder();

function compareBytes(a: string, b: string): number {
  const left = bytes.encode(a);
  const right = bytes.encode(b);
  for (let at = 0; at < Math.min(left.length, right.length); at++) {
    const difference = (left[at] ?? 0) - (right[at] ?? 0);
    if (difference) return difference;
  }
  return left.length - right.length;
}

/** The entries after a change. */
export function changed(entries: readonly Entry[], change: Change, ties: TieOrder): Entry[] {
  const sign = ties === "asc" ? 1 : -1;
  const after = new Map(entries.map((entry) => [entry.member, entry]));
  for (const member of change.left) after.delete(member);
  for (const { rank, member, score, person } of change.entries) after.set(member, { rank, member, score, ...(person && { person }) });
  return [...after.values()].sort((a, b) => a.rank - b.rank || sign * compareBytes(a.member, b.member));
}

/**
 * Each member's rank in the previous window, as far as pages reported it. It stays the same while this window runs, so a
 * member's gain follows from any new rank.
 */
export class Before {
  #ranks = new Map<string, number | null>();

  /** From a page that was read with changes: a member without one was not in the previous window. */
  hear(entries: readonly Entry[]): void {
    for (const { member, rank, change } of entries) this.#ranks.set(member, typeof change === "number" ? rank + change : null);
  }

  /** Ranks gained; null if the member was not there, undefined while unknown. */
  gained({ member, rank }: Entry): number | null | undefined {
    const before = this.#ranks.get(member);
    return typeof before === "number" ? before - rank : before;
  }

  clear(): void {
    this.#ranks.clear();
  }
}
