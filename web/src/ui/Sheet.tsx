import type { HTMLAttributes, ReactNode, TableHTMLAttributes } from "react";
import styles from "./ui.module.css";

interface SheetProps extends HTMLAttributes<HTMLElement> {
  as?: "section" | "aside" | "div" | "form";
  isPadded?: boolean;
}

/** A sheet of paper on the page's ground. */
export function Sheet({ as: Tag = "section", isPadded = false, className = "", ...rest }: SheetProps) {
  return <Tag {...(rest as HTMLAttributes<HTMLElement>)} className={`${styles["sheet"]} ${isPadded ? styles["padded"] : ""} ${className}`} />;
}

interface TableProps extends TableHTMLAttributes<HTMLTableElement> {
  /** What the table is, for whoever cannot see it. */
  caption: ReactNode;
}

/** A table with the semantics of one. Cells of numbers have `className={numberCell}`. */
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
