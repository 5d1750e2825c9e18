import type { ButtonHTMLAttributes } from "react";
import styles from "./ui.module.css";

interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  look?: "primary" | "danger" | "quiet" | "plain" | undefined;
  small?: boolean;
}

export const buttonClass = (look?: ButtonProps["look"], small = false): string =>
  [styles["button"], look && styles[look], small && styles["small"]].filter(Boolean).join(" ");

export function Button({ look, small = false, type = "button", className = "", ...rest }: ButtonProps) {
  return <button {...rest} type={type} className={`${buttonClass(look, small)} ${className}`} />;
}
