/** Where a page needs a key, and there is none: asks for one. */
import { type FormEvent, type ReactNode, useState } from "react";
import { remember, useAccess } from "../lib/access";
import { Button, Input, Sheet, Title } from "../ui";
import styles from "./app.module.css";

/** Shows its children once there is a key; `why` says what was wrong with the last one. */
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
      <Title>A key, please</Title>
      <h1>A key, please</h1>
      <p>
        This page shows what an API key may read. The address that <code>laurels serve</code> prints brings one along;{" "}
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
          hint="It stays in this tab, and is forgotten when you close it."
          onChange={(event) => setTyped(event.target.value)}
        />
        <Button type="submit" look="primary">
          Open
        </Button>
      </form>
    </Sheet>
  );
}
