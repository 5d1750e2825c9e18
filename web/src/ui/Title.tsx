import { useEffect } from "react";

/** Sets the title of the browser's tab: "arcade · Laurels". */
export function Title({ children }: { children: string }) {
  useEffect(() => {
    document.title = `${children} · Laurels`;
    return () => {
      document.title = "Laurels";
    };
  }, [children]);
  return null;
}
