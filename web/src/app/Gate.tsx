/** Asks for a key on pages that need one. */
import { type FormEvent, type ReactNode, useState } from "react";
import { remember, useAccess } from "../lib/access";
import { Button, Input, Sheet, Title } from "../ui";
import styles from "./app.module.css";

/** Shows its children once there is a key; `why` says why the last one was refused. */
export function WithKey({ children, why }: { children: ReactNode; why?: string | undefined }) {
  return useAccess("key") ? children : <Gate why={why} />;
}

export function Gate({ why }: { why?: string | undefined }) {
  const [typed, setTyped] = useState("");
  const open = (event: FormEvent) => {
    event.preventDefault();
    remember("key", typed.trim());
  };
  return (
    <Sheet as="div" isPadded className={styles["gate"] ?? ""}>
      <Title>Enter an API key</Title>
      <h1>Enter an API key</h1>
      <p>
        This page needs an API key that may read. The address that <code>laurels serve</code> prints contains one;{" "}
        <code>laurels keys create PROJECT --scope read</code> makes one.
      </p>
      <form onSubmit={open}>
        <Input
          label="API key"
          type="password"
          placeholder="lk_…"
          required
          value={typed}
          wrong={why}
          hint="Kept in this tab until you close it."
          onChange={(event) => setTyped(event.target.value)}
        />
        <Button type="submit" look="primary">
          Open
        </Button>
      </form>
    </Sheet>
  );
}
