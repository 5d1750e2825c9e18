/** Animation: rows glide to their places, unless the reader prefers less motion. */
import { useLayoutEffect, useRef } from "react";
import type { Ranking } from "./ranking";

const FARTHEST = 14; // the longest distance of a move, in rows

export const mayMove = (): boolean => !window.matchMedia("(prefers-reduced-motion: reduce)").matches;

/** A row glides to its new place; a new row fades in. */
export function useMoves(scroller: { readonly current: HTMLElement | null }, ranking: Ranking, row: number): void {
  const before = useRef<{ ranking: Ranking; moves: number; places: Map<string, number> } | null>(null);
  useLayoutEffect(() => {
    const known = before.current;
    const places = new Map<string, number>();
    const elements = scroller.current?.querySelectorAll<HTMLElement>("tr[data-member]") ?? [];
    const hasMoved = known !== null && known.ranking === ranking && known.moves !== ranking.moves && known.places.size > 0 && mayMove();
    for (const element of elements) {
      const member = element.dataset["member"] ?? "";
      const place = Number(element.dataset["index"]);
      places.set(member, place);
      if (hasMoved) glide(element, known.places.get(member), place, row);
    }
    before.current = { ranking, moves: ranking.moves, places };
  });
}

function glide(element: HTMLElement, from: number | undefined, to: number, row: number): void {
  if (from === to) return;
  const timing = { duration: 450, easing: "cubic-bezier(.2,.7,.2,1)" };
  if (from === undefined) {
    element.animate([{ opacity: 0 }, {}], timing);
    return;
  }
  const by = Math.max(-FARTHEST, Math.min(FARTHEST, from - to)) * row;
  element.animate([{ transform: `translateY(${by}px)`, zIndex: from > to ? 1 : 0 }, {}], timing);
}

/** Highlights the requested row for a moment. */
export function showOff(row: Element): void {
  if (!mayMove()) return;
  for (const cell of row.children) cell.animate([{ backgroundColor: "var(--leaf-wash)" }, {}], { duration: 1800, easing: "ease-out" });
}
