import { type RefObject, useLayoutEffect, useRef } from "react";

const DURATION = 450; // milliseconds

/** Rows with a `data-row` glide to their new places, unless the reader prefers less motion. */
export function useGliding(body: RefObject<HTMLElement | null>, order: string): void {
  const before = useRef<{ order: string; places: Map<string, number> }>({ order: "", places: new Map() });
  useLayoutEffect(() => {
    const rows = [...(body.current?.querySelectorAll<HTMLElement>("[data-row]") ?? [])];
    const places = new Map(rows.map((row) => [row.dataset["row"] ?? "", row.offsetTop]));
    const had = before.current;
    before.current = { order, places };
    if (had.order === order || !had.order || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    for (const row of rows) {
      const from = had.places.get(row.dataset["row"] ?? "");
      const by = from === undefined ? 0 : from - row.offsetTop;
      if (by) row.animate([{ transform: `translateY(${by}px)` }, {}], { duration: DURATION, easing: "cubic-bezier(.2,.7,.2,1)" });
    }
  });
}
