/** The states of a view without data: loading, empty, failed, offline. */
import type { ReactNode } from "react";
import type { Problem } from "../lib/problem";
import { useReachable } from "../lib/reach";
import { Button } from "./Button";
import styles from "./ui.module.css";

export const Skeleton = ({ width = "100%" }: { width?: string }) => <i className={styles["skeleton"]} style={{ width }} />;

/** Rows of a table that is loading. */
export function SkeletonRows({ rows = 10, columns }: { rows?: number; columns: number }) {
  return Array.from({ length: rows }, (_, row) => (
    <tr key={row} aria-hidden="true">
      {Array.from({ length: columns }, (_, column) => (
        <td key={column} style={{ height: "3rem" }}>
          <Skeleton width={column === 1 ? `${50 + ((row * 17) % 35)}%` : "70%"} />
        </td>
      ))}
    </tr>
  ));
}

interface StateProps {
  title: string;
  children?: ReactNode;
  action?: ReactNode;
}

export function EmptyState({ title, children, action }: StateProps) {
  return (
    <div className={styles["state"]}>
      <strong>{title}</strong>
      {children && <p>{children}</p>}
      {action}
    </div>
  );
}

/** What went wrong, with a button to try again. */
export function ErrorState({ problem, again }: { problem: Problem; again?: () => void }) {
  return (
    <div className={styles["state"]} role="alert">
      <strong>{problem.title}</strong>
      {problem.message !== problem.title && <p>{problem.message}</p>}
      {again && <Button onClick={again}>Try again</Button>}
    </div>
  );
}

export function OfflineBanner() {
  const isReachable = useReachable();
  return (
    <div role="status">
      {!isReachable && <p className={styles["offline"]}>Laurels cannot be reached. What you see may be out of date. Trying again…</p>}
    </div>
  );
}
