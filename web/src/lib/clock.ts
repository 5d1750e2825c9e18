/** The server's clock, as far as its answers tell it. Time left is counted by it, not by the reader's own. */

const TOLERANCE = 2_000; // milliseconds: a Date header is whole seconds, and some way old

let ahead = 0; // milliseconds that the server's clock is ahead of ours

export function hearDate(header: string | null): void {
  const told = Date.parse(header ?? "");
  if (Number.isNaN(told)) return;
  const difference = told - Date.now();
  ahead = Math.abs(difference) > TOLERANCE ? difference : 0;
}

export const serverNow = (): number => Date.now() + ahead;
