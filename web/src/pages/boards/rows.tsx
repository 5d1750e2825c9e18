/** The parts of a ranking's table. */
import { type CSSProperties, memo, useEffect, useRef } from "react";
import { Rank, RankChange, Score, Skeleton } from "../../ui";
import styles from "./boards.module.css";
import { MemberName } from "./MemberName";
import { mayMove } from "./moves";

/** Rows that are not drawn. */
export const Space = ({ rows, row }: { rows: number; row: number }) =>
  rows > 0 ? (
    <tbody aria-hidden="true" className={styles["space"]}>
      <tr>
        <td colSpan={4} style={{ height: rows * row }} />
      </tr>
    </tbody>
  ) : null;

interface RowProps {
  index: number;
  rank: number;
  member: string;
  name: string | null | undefined;
  avatar: string | null | undefined;
  score: number | string;
  change: number | null | undefined;
  share: number;
  isChosen: boolean;
  isMe: boolean;
  isTabbable: boolean;
  onChoose: (member: string) => void;
  onFocus: (index: number) => void;
}

export const Row = memo(function Row({ index, rank, member, name, avatar, score, change, share, isChosen, isMe, isTabbable, onChoose, onFocus }: RowProps) {
  const cell = useRef<HTMLTableCellElement>(null);
  const before = useRef(score);
  useEffect(() => {
    if (before.current !== score && mayMove()) cell.current?.animate([{ color: "var(--leaf)" }, {}], { duration: 1500 });
    before.current = score;
  }, [score]);
  return (
    <tr data-index={index} data-member={member} aria-rowindex={index + 2} className={isChosen || isMe ? styles["outstanding"] : undefined}>
      <td className={styles["rankCell"]}>
        <Rank rank={rank} />
      </td>
      <td className={styles["changeCell"]}>
        <RankChange change={change} />
      </td>
      <th scope="row" className={styles["memberCell"]}>
        <button
          type="button"
          title={member}
          tabIndex={isTabbable ? 0 : -1}
          aria-current={isChosen || undefined}
          onClick={() => onChoose(member)}
          onFocus={() => onFocus(index)}
        >
          <MemberName member={member} name={name} avatar={avatar} />
        </button>
        {isMe && <span className={styles["me"]}>me</span>}
      </th>
      <td ref={cell} className={styles["scoreCell"]} style={{ "--share": share } as CSSProperties}>
        <Score value={score} />
      </td>
    </tr>
  );
});

export const LoadingRow = memo(({ index }: { index: number }) => (
  <tr data-index={index} data-loading="" aria-rowindex={index + 2} aria-hidden="true">
    <td className={styles["rankCell"]}>
      <Skeleton width="60%" />
    </td>
    <td />
    <td>
      <Skeleton width={`${40 + ((index * 17) % 35)}%`} />
    </td>
    <td className={styles["scoreCell"]}>
      <Skeleton width="60%" />
    </td>
  </tr>
));
