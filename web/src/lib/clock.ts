/** The server's clock, from the `Date` of its answers. Countdowns use it, not the reader's clock. */

const TOLERANCE = 2_000; // milliseconds: a Date header has whole seconds and took time to arrive

let ahead = 0; // milliseconds that the server's clock is ahead of ours

export function noteDate(header: string | null): void {
  const told = Date.parse(header ?? "");
  if (Number.isNaN(told)) return;
  const difference = told - Date.now();
  ahead = Math.abs(difference) > TOLERANCE ? difference : 0;
}

export const serverNow = (): number => Date.now() + ahead;
