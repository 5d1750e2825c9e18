/** A campus's table: rank, name and points. The reader's own row stands out and stays in sight. */
import { useLayoutEffect, useRef, useState } from "react";
import { points1, type Row } from "../lib/leaderboards";
import { Avatar, numberCell, Rank, RankChange, SkeletonRows, Table } from "../ui";
import styles from "./components.module.css";
import { useGliding } from "./useGliding";

interface LeaderboardTableProps {
  caption: string;
  /** Undefined while loading. */
  rows: readonly Row[] | undefined;
  /** The reader's own row, on any page; null without one, or without a token. */
  mine: Row | null;
  isStale?: boolean;
}

export function LeaderboardTable({ caption, rows, mine, isStale = false }: LeaderboardTableProps) {
  const body = useRef<HTMLTableSectionElement>(null);
  const [isInSight, setInSight] = useState(true);
  const order = rows?.map((row) => row.user_id).join() ?? "";
  const isHere = rows?.some((row) => row.user_id === mine?.user_id) ?? false;
  useGliding(body, order);

  useLayoutEffect(() => {
    const row = isHere ? body.current?.querySelector("tr[aria-current]") : null;
    if (!row) {
      setInSight(false);
      return;
    }
    const observer = new IntersectionObserver(([seen]) => setInSight(seen?.isIntersecting ?? false), { threshold: 0.6 });
    observer.observe(row);
    return () => observer.disconnect();
  }, [isHere, order]);

  const best = Math.max(...(rows ?? []).map((row) => row.score), 0);
  return (
    <Table caption={caption} className={styles["leaderboard"] ?? ""} data-stale={isStale || undefined}>
      <thead>
        <tr>
          <th scope="col" className={styles["rank"]}>
            Rank
          </th>
          <th scope="col">Name</th>
          <th scope="col" className={`${numberCell} ${styles["points"]}`}>
            Score
          </th>
        </tr>
      </thead>
      <tbody ref={body}>
        {rows ? (
          rows.map((row) => <LeaderboardRow key={row.user_id} row={row} isMine={row.user_id === mine?.user_id} best={best} />)
        ) : (
          <SkeletonRows columns={3} />
        )}
      </tbody>
      {rows && mine && !isInSight && (
        <tfoot className={styles["pinned"]}>
          <LeaderboardRow row={mine} isMine best={best} />
        </tfoot>
      )}
    </Table>
  );
}

function LeaderboardRow({ row, isMine, best }: { row: Row; isMine: boolean; best: number }) {
  const name = row.handle || row.user_id.slice(0, 8);
  return (
    <tr data-row={row.user_id} aria-current={isMine || undefined} className={isMine ? styles["mine"] : undefined}>
      <td className={styles["rank"]}>
        <Rank rank={row.rank} />
      </td>
      <th scope="row">
        <span className={styles["who"]}>
          <Avatar name={name} url={row.avatar_url} />
          <span className={styles["name"]}>
            <bdi className={styles["handle"]}>{name}</bdi>
            {isMine && <span className={styles["you"]}>you</span>}
            <RankChange change={row.deltas?.rank} since="the day before" />
          </span>
        </span>
      </th>
      <td className={`${numberCell} ${styles["points"]}`}>
        <meter className={styles["meter"]} aria-hidden="true" max={best || 1} value={row.score} />
        <span>{points1(row.score)}</span>
      </td>
    </tr>
  );
}
