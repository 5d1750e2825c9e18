import { useEffect } from "react";

/** What the tab is called while this is shown: "arcade · Laurels". */
export function Title({ children }: { children: string }) {
  useEffect(() => {
    document.title = `${children} · Laurels`;
    return () => {
      document.title = "Laurels";
    };
  }, [children]);
  return null;
}
