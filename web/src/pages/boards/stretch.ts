/**
 * Which rows of a long table are drawn, and where. Pure.
 *
 * All rows have the same height. No browser draws an element as high as a million rows, so the scroller holds only a
 * stretch of them. Before the reader reaches its end, the stretch and the scroller move together, so nothing jumps.
 */

export const MOST_ROWS = 150_000; // in one stretch: at most 7 million pixels; Firefox allows 17
const LENGTH = 100_000; // of a stretch, where there are more
const EDGE = 10_000; // rows before the end of a stretch at which it moves
const BESIDES = 12; // extra rows drawn above and below those in view

export interface Stretch {
  /** Indexes from 0; `end` is behind the last. */
  readonly start: number;
  readonly end: number;
}

/** The stretch for a row; the present one while the row is well inside. */
export function stretchAround(index: number, count: number, held?: Stretch): Stretch {
  if (count <= MOST_ROWS) return held?.start === 0 && held.end === count ? held : { start: 0, end: count };
  const fits =
    held !== undefined &&
    held.end <= count &&
    (held.start === 0 || index - held.start >= EDGE) &&
    (held.end === count || held.end - index >= EDGE) &&
    index < held.end;
  if (fits) return held;
  const start = Math.max(0, Math.min(index - LENGTH / 2, count - LENGTH));
  return { start, end: Math.min(count, start + LENGTH) };
}

/** The rows to draw for the visible range. */
export function drawn(first: number, inView: number, stretch: Stretch): Stretch {
  const start = Math.max(stretch.start, first - BESIDES);
  return { start, end: Math.max(start, Math.min(stretch.end, first + inView + BESIDES)) };
}

/** The row that must be on top so that `index` is visible; `first` if it already is. */
export function firstToSee(index: number, first: number, inView: number): number {
  if (index < first) return index;
  if (index >= first + inView) return index - inView + 1;
  return first;
}

/** The row that a key moves to; null for other keys. */
export function rowAfter(key: string, index: number, inView: number, count: number): number | null {
  const page = Math.max(1, inView - 1);
  const to = { ArrowDown: index + 1, ArrowUp: index - 1, PageDown: index + page, PageUp: index - page, Home: 0, End: count - 1 }[key];
  return to === undefined ? null : Math.max(0, Math.min(count - 1, to));
}
