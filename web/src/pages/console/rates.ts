/** Rates per second, from samples of counters that only grow. */
import type { Schemas } from "../../lib/client";

export type Figures = Schemas["Figures"];

export const MOST_LOOKS = 60;

/** Appends a sample, unless it is of the same moment. */
export function withLook(looks: readonly Figures[], look: Figures): readonly Figures[] {
  return looks.at(-1)?.at === look.at ? looks : [...looks, look].slice(-MOST_LOOKS);
}

/** The rate between consecutive samples: null after a restart, or if unknown. */
export function perSecond(looks: readonly Figures[], counted: (look: Figures) => number | null | undefined): (number | null)[] {
  return looks.slice(1).map((look, index) => {
    const before = looks[index];
    const seconds = before ? (Date.parse(look.at) - Date.parse(before.at)) / 1000 : 0;
    const now = counted(look);
    const then = before && counted(before);
    if (now === null || now === undefined || then === null || then === undefined || seconds <= 0 || now < then) return null;
    return (now - then) / seconds;
  });
}

export const recordedBy =
  (project: string, board: string) =>
  (look: Figures): number | undefined =>
    look.boards.find((each) => each.project === project && each.board === board)?.recorded;

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

/** 1536 as "1.5 KiB". */
export function bytes(value: number): string {
  const power = Math.min(Math.max(Math.floor(Math.log2(Math.max(value, 1)) / 10), 0), UNITS.length - 1);
  const number = new Intl.NumberFormat(undefined, { maximumFractionDigits: power ? 1 : 0 });
  return `${number.format(value / 1024 ** power)} ${UNITS[power]}`;
}
