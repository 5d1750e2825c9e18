/** What the views of the console are made of. */
import { type ReactNode, useEffect, useId, useState } from "react";
import { ask, type Schemas } from "../../lib/client";
import { asProblem } from "../../lib/problem";
import { type Asked, useAsk } from "../../lib/useAsk";
import { Button, Dialog, ErrorState, Input, say, scrollBox, Skeleton, Title } from "../../ui";
import styles from "./console.module.css";
import { consoleApi, isOperator, type Session } from "./session";

/** A view's heading, which is focused when somebody comes here, and what can be done there. */
export function Heading({ title, about, children }: { title: string; about?: ReactNode; children?: ReactNode }) {
  return (
    <div className={styles["heading"]}>
      <Title>{title}</Title>
      <div>
        <h1 tabIndex={-1}>{title}</h1>
        {about && <p className={styles["soft"]}>{about}</p>}
      </div>
      {children && <div className={styles["actions"]}>{children}</div>}
    </div>
  );
}

/** A table that may be wider than the page: it scrolls by itself, also by keys. */
export function Wide({ label, children }: { label: string; children: ReactNode }) {
  return (
    <div className={`${scrollBox} ${styles["wide"]}`} role="region" aria-label={label} tabIndex={0}>
      {children}
    </div>
  );
}

/** What was asked for once it is there; until then that it loads, or why it is not. */
export function Told<T>({ asked, children }: { asked: Asked<T>; children: (data: T) => ReactNode }) {
  if (asked.data !== undefined) {
    return (
      <>
        {asked.problem && !asked.problem.isOffline && (
          <p role="status" className={styles["warning"]}>
            {asked.problem.message}
          </p>
        )}
        {children(asked.data)}
      </>
    );
  }
  if (asked.problem) return <ErrorState problem={asked.problem} again={asked.again} />;
  return (
    <div className={styles["loading"]} role="status" aria-label="Loading">
      <Skeleton width="60%" />
      <Skeleton />
      <Skeleton width="80%" />
    </div>
  );
}

/** What a button of a row says, and for whoever does not see the row, of which. */
export const Of = ({ does, what, more = "" }: { does: string; what: string; more?: string }) => (
  <span>
    {does}
    <span className="unseen"> {what}</span>
    {more}
  </span>
);

interface ConfirmProps {
  title: string;
  /** What the button says: the very thing that it does. */
  does: string;
  onClose: () => void;
  /** Done, the dialog closes; what goes wrong is said in it. */
  act: () => Promise<void>;
  /** What must be typed first. */
  typed?: string;
  children: ReactNode;
}

/** Asks before what cannot be undone. */
export function Confirm({ title, does, onClose, act, typed, children }: ConfirmProps) {
  const [wrong, setWrong] = useState("");
  const [given, setGiven] = useState("");
  const [isActing, setActing] = useState(false);
  const id = useId();
  const go = async () => {
    setActing(true);
    setWrong("");
    try {
      await act();
      onClose();
    } catch (error) {
      setWrong(asProblem(error).message);
      setActing(false);
    }
  };
  return (
    <Dialog
      title={title}
      isOpen
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="danger" disabled={isActing || (typed !== undefined && given !== typed)} onClick={() => void go()}>
            {does}
          </Button>
        </>
      }
    >
      {children}
      {typed !== undefined && (
        <p className={styles["typed"]}>
          <label htmlFor={id}>
            Type <code>{typed}</code> to confirm
          </label>
          <input id={id} value={given} autoComplete="off" spellCheck={false} onChange={(event) => setGiven(event.target.value)} />
        </p>
      )}
      {wrong && (
        <p role="alert" className={styles["wrong"]}>
          {wrong}
        </p>
      )}
    </Dialog>
  );
}

/** A secret that is shown this once. */
export function ShownOnce({ title, secret, onClose, children }: { title: string; secret: string; onClose: () => void; children?: ReactNode }) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(secret);
      say("Copied");
    } catch {
      say("The browser does not let us copy: select it, and copy it yourself", { isBad: true });
    }
  };
  return (
    <Dialog
      title={title}
      isOpen
      onClose={onClose}
      actions={
        <>
          <Button onClick={() => void copy()}>Copy</Button>
          <Button look="primary" onClick={onClose}>
            I have kept it
          </Button>
        </>
      }
    >
      <p>Keep it now: it is shown this once, and cannot be shown again.</p>
      <code className={styles["secret"]} tabIndex={0}>
        {secret}
      </code>
      {children}
    </Dialog>
  );
}

/** The projects that whoever is signed in may see; their own too while it has no board. */
export function useProjects(session: Session): Asked<string[]> {
  return useAsk("projects", async (signal) => {
    const { projects } = await ask<Schemas["Projects"]>(consoleApi.GET("/v1/projects", { signal }));
    return isOperator(session) || projects.includes(session.project) ? projects : [session.project];
  });
}

/** Which project a view is about: the one of the key, or one to be chosen. A new name is one too. */
export function ProjectPicker({ session, project, onChoose }: { session: Session; project: string; onChoose: (project: string) => void }) {
  const { data = [] } = useProjects(session);
  const [typed, setTyped] = useState(project);
  useEffect(() => setTyped(project), [project]);
  if (!isOperator(session)) return null;
  const choose = (value: string) => value.trim() && value !== project && onChoose(value.trim());
  return (
    <form
      className={styles["picker"]}
      onSubmit={(event) => {
        event.preventDefault();
        choose(typed);
      }}
    >
      <Input
        label="Project"
        list="console-projects"
        value={typed}
        onChange={(event) => {
          setTyped(event.target.value);
          if (data.includes(event.target.value)) choose(event.target.value);
        }}
        onBlur={() => choose(typed)}
      />
      <datalist id="console-projects">
        {data.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </form>
  );
}

/** What the value was, until it has not changed for so many milliseconds. */
export function useSettled<T>(value: T, milliseconds: number): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), milliseconds);
    return () => clearTimeout(timer);
  }, [value, milliseconds]);
  return settled;
}
