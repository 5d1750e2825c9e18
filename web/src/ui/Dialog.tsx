/** The browser's own dialog: focus stays inside; Escape closes it and returns the focus. */
import { type ReactNode, useEffect, useId, useRef } from "react";
import styles from "./ui.module.css";

interface DialogProps {
  title: string;
  isOpen: boolean;
  onClose: () => void;
  children: ReactNode;
  /** Buttons, the safe one first. */
  actions?: ReactNode;
}

export function Dialog({ title, isOpen, onClose, children, actions }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const element = dialog.current;
    if (!element || element.open === isOpen) return;
    if (isOpen) element.showModal();
    else element.close();
  }, [isOpen]);
  return (
    <dialog ref={dialog} className={styles["dialog"]} aria-labelledby={id} onClose={() => isOpen && onClose()}>
      {isOpen && (
        <>
          <h2 id={id}>{title}</h2>
          {children}
          {actions && <div className={styles["actions"]}>{actions}</div>}
        </>
      )}
    </dialog>
  );
}
