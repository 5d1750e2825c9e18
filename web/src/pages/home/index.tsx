/** The first page hands over to the boards; addresses of the page that stood here before still lead where they did. */
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
