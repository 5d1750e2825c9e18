/** What a change would drop, window by window. */
import type { Drop } from "../../lib/problem";
import { counted, list } from "../../lib/words";

export function Drops({ drops }: { drops: readonly Drop[] }) {
  return (
    <ul aria-label="What is dropped">
      {drops.map(({ window, entries, snapshots }) => (
        <li key={window}>
          <strong>{window}</strong>: {list([...(entries ? [counted(entries, "entry", "entries")] : []), ...(snapshots ? [counted(snapshots, "snapshot", "snapshots")] : [])])}
        </li>
      ))}
    </ul>
  );
}
