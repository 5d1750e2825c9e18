import type { HTMLAttributes, ReactNode, TableHTMLAttributes } from "react";
import styles from "./ui.module.css";

interface SheetProps extends HTMLAttributes<HTMLElement> {
  as?: "section" | "aside" | "div" | "form";
  isPadded?: boolean;
}

/** A raised area of a page. */
export function Sheet({ as: Tag = "section", isPadded = false, className = "", ...rest }: SheetProps) {
  return <Tag {...(rest as HTMLAttributes<HTMLElement>)} className={`${styles["sheet"]} ${isPadded ? styles["padded"] : ""} ${className}`} />;
}

interface TableProps extends TableHTMLAttributes<HTMLTableElement> {
  /** Names the table for screen readers. */
  caption: ReactNode;
}

/** A table with its semantics. Cells of numbers have `className={numberCell}`. */
export function Table({ caption, className = "", children, ...rest }: TableProps) {
  return (
    <table {...rest} className={`${styles["table"]} ${className}`}>
      <caption className="unseen">{caption}</caption>
      {children}
    </table>
  );
}

export const numberCell = styles["number"] ?? "";
export const scrollBox = styles["scroll"] ?? "";
