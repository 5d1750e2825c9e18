/** A snapshot of a running window: as it was at that moment. */
import { useState } from "react";
import type { Schemas } from "../../lib/client";
import { count } from "../../lib/words";
import { Button, ErrorState, Moment, numberCell, Rank, Score, Sheet, SkeletonRows, Table } from "../../ui";
import { type BoardName, useSnapshot } from "./asking";
import styles from "./boards.module.css";
import { MemberName, named } from "./MemberName";

interface SnapshotTableProps {
  name: BoardName;
  snapshot: string;
  chosen: string;
  onChoose: (member: string) => void;
}

export function SnapshotTable({ name, snapshot, chosen, onChoose }: SnapshotTableProps) {
  const [read, setRead] = useState<{ entries: Schemas["Entry"][]; cursor: string }>({ entries: [], cursor: "" });
  const { data, problem, again } = useSnapshot(name, snapshot, read.cursor);
  if (problem && !data) return <ErrorState problem={problem} again={again} />;
  const entries = [...read.entries, ...(data?.entries ?? [])];
  return (
    <Sheet as="div">
      <Table caption="An archived table: rank, member and score">
        <thead>
          <tr>
            <th scope="col" className={styles["rankCell"]}>
              Rank
            </th>
            <th scope="col">Member</th>
            <th scope="col" className={numberCell}>
              Score
            </th>
          </tr>
        </thead>
        <tbody>
          {entries.map((entry) => (
            <tr key={entry.member} className={entry.member === chosen ? styles["outstanding"] : undefined}>
              <td className={styles["rankCell"]}>
                <Rank rank={entry.rank} />
              </td>
              <th scope="row" className={styles["memberCell"]}>
                <button type="button" title={entry.member} onClick={() => onChoose(entry.member)}>
                  <MemberName {...named(entry)} />
                </button>
              </th>
              <td className={numberCell}>
                <Score value={entry.score} />
              </td>
            </tr>
          ))}
          {!data && <SkeletonRows rows={8} columns={3} />}
        </tbody>
      </Table>
      {data && (
        <p className={styles["foot"]}>
          As it was on <Moment at={data.snapshot.taken_at} />: {count(entries.length)} of {count(data.total)}{" "}
          {data.next && (
            <Button small onClick={() => setRead({ entries, cursor: data.next ?? "" })}>
              More
            </Button>
          )}
        </p>
      )}
    </Sheet>
  );
}
