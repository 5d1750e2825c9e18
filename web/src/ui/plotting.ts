/** The arithmetic of plots. */

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** Maps a domain to a range; a domain of one value maps to the middle. */
export function scale([from, to]: readonly [number, number], [low, high]: readonly [number, number]): (value: number) => number {
  return (value) => (to === from ? (low + high) / 2 : low + ((value - from) / (to - from)) * (high - low));
}

export const extent = (values: readonly number[]): [number, number] =>
  values.length ? [Math.min(...values), Math.max(...values)] : [0, 0];

/** About `count` round values that span the domain: 1, 2 or 5 times a power of ten apart. */
export function ticks([from, to]: readonly [number, number], count = 4): number[] {
  if (!(to > from)) return [from];
  const rough = (to - from) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5, 10].find((times) => times * power >= rough) ?? 10) * power;
  const first = Math.ceil(from / step);
  const last = Math.floor(to / step + 1e-9);
  return Array.from({ length: Math.max(last - first + 1, 0) }, (_, index) => Number(((first + index) * step).toPrecision(12)));
}

/** The `d` of a path through the points, with a gap for each missing one. */
export function pathThrough(points: readonly (Point | null)[]): string {
  let isDown = false;
  return points
    .map((point) => {
      if (!point) {
        isDown = false;
        return "";
      }
      const command = `${isDown ? "L" : "M"}${round(point.x)} ${round(point.y)}`;
      isDown = true;
      return command;
    })
    .join("");
}

const round = (value: number): number => Math.round(value * 100) / 100;
