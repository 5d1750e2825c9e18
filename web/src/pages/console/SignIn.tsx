import { type FormEvent, useEffect, useRef, useState } from "react";
import { useAccess } from "../../lib/access";
import { asProblem } from "../../lib/problem";
import { Button, Input, Sheet, Title } from "../../ui";
import styles from "./console.module.css";
import { signIn } from "./session";

export function SignIn({ why }: { why: string }) {
  const [key, setKey] = useState("");
  const [wrong, setWrong] = useState("");
  const [isAsking, setAsking] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (wrong) form.current?.querySelector("input")?.focus();
  }, [wrong]);
  const ofTab = useAccess("key");
  const submit = async (key: string) => {
    setAsking(true);
    setWrong("");
    try {
      setWrong(await signIn(key));
    } catch (error) {
      setWrong(asProblem(error).message);
    }
    setAsking(false);
  };
  const send = (event: FormEvent) => {
    event.preventDefault();
    void submit(key.trim());
  };
  return (
    <Sheet as="div" isPadded className={styles["signIn"] ?? ""}>
      <Title>Sign in</Title>
      <h1>Console</h1>
      {why && (
        <p role="alert" className={styles["warning"]}>
          {why}
        </p>
      )}
      <p className={styles["soft"]}>
        For operators of Laurels or of a project. Sign in with an API key that has the scope <code>admin</code>: the address that{" "}
        <code>laurels serve</code> prints contains one, and <code>laurels keys create PROJECT --scope admin</code> makes one.
      </p>
      <form ref={form} onSubmit={send} className={styles["form"]}>
        <Input
          label="Admin key"
          type="password"
          autoComplete="current-password"
          required
          value={key}
          wrong={wrong || undefined}
          hint="The page does not store it. The session lasts at most 12 hours, and ends when the key is revoked."
          onChange={(event) => setKey(event.target.value)}
        />
        <Button type="submit" look="primary" disabled={isAsking}>
          {isAsking ? "Signing in…" : "Sign in"}
        </Button>
        {ofTab && (
          <Button disabled={isAsking} onClick={() => void submit(ofTab)}>
            Use the key of this tab
          </Button>
        )}
      </form>
    </Sheet>
  );
}
