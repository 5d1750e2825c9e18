/** The first page leads to the boards. Addresses of an earlier first page still work. */
import { useEffect } from "react";
import { WithKey } from "../../app/Gate";
import { navigate, useAddress } from "../../router/router";

export default function Home() {
  return (
    <WithKey>
      <HandOver />
    </WithKey>
  );
}

function HandOver() {
  const { query } = useAddress();
  useEffect(() => {
    const rest = new URLSearchParams(query);
    const path = ["project", "board"].map((name) => rest.get(name) ?? "").filter(Boolean);
    rest.delete("project");
    rest.delete("board");
    navigate(["boards", ...path], rest, { replace: true });
  }, [query]);
  return null;
}
