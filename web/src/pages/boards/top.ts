/** The best of a window, kept by what the live stream tells. Pure. */
import type { Schemas } from "../../lib/client";

export type Entry = Pick<Schemas["Entry"], "rank" | "member" | "score" | "change">;
export type Page = Omit<Schemas["Page"], "entries"> & { readonly entries: readonly Entry[] };

/** What a `change` event carries. */
export interface Change {
  readonly total: number;
  readonly entries: readonly (Entry & { readonly previous_rank: number | null })[];
  readonly left: readonly string[];
}

/** Equal ranks are listed as the server does: by member, descending where the highest score is best. */
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
  for (const { rank, member, score } of change.entries) after.set(member, { rank, member, score });
  return [...after.values()].sort((a, b) => a.rank - b.rank || sign * compareBytes(a.member, b.member));
}

/**
 * Where each member stood in the window before, as far as pages told: that stays while this window goes on, so what a
 * member gained follows from any rank that it comes to.
 */
export class Before {
  #ranks = new Map<string, number | null>();

  /** Of a page that was asked for what each gained: where it says nothing of one, there is nothing to say. */
  hear(entries: readonly Entry[]): void {
    for (const { member, rank, change } of entries) this.#ranks.set(member, typeof change === "number" ? rank + change : null);
  }

  /** Ranks gained; null for who was not there, undefined while it is not known. */
  gained({ member, rank }: Entry): number | null | undefined {
    const before = this.#ranks.get(member);
    return typeof before === "number" ? before - rank : before;
  }

  clear(): void {
    this.#ranks.clear();
  }
}
