/** The components of the console's views. */
import { type ReactNode, useEffect, useId, useState } from "react";
import { ask, type Schemas } from "../../lib/client";
import { asProblem } from "../../lib/problem";
import { type Asked, useAsk } from "../../lib/useAsk";
import { Button, Dialog, ErrorState, Input, say, scrollBox, Skeleton, Title } from "../../ui";
import styles from "./console.module.css";
import { consoleApi, isOperator, type Session } from "./session";

/** A view's heading, focused on arrival, and the view's buttons. */
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

/** A table that may be wider than the page and scrolls, by keyboard too. */
export function Wide({ label, children }: { label: string; children: ReactNode }) {
  return (
    <div className={`${scrollBox} ${styles["wide"]}`} role="region" aria-label={label} tabIndex={0}>
      {children}
    </div>
  );
}

/** Shows an answer, or that it is loading, or why it failed. */
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

/** The label of a row's button; for screen readers it names the row. */
export const Of = ({ does, what, more = "" }: { does: string; what: string; more?: string }) => (
  <span>
    {does}
    <span className="unseen"> {what}</span>
    {more}
  </span>
);

interface ConfirmProps {
  title: string;
  /** The button's label: what it does. */
  does: string;
  onClose: () => void;
  /** After success the dialog closes; it shows errors. */
  act: () => Promise<void>;
  /** Text that must be typed first. */
  typed?: string;
  children: ReactNode;
}

/** Asks before an action that cannot be undone. */
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

/** Shows a secret once. */
export function ShownOnce({ title, secret, onClose, children }: { title: string; secret: string; onClose: () => void; children?: ReactNode }) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(secret);
      say("Copied");
    } catch {
      say("The browser does not allow copying. Select the text and copy it yourself", { isBad: true });
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
            I have copied it
          </Button>
        </>
      }
    >
      <p>Copy it now: it is shown only once.</p>
      <code className={styles["secret"]} tabIndex={0}>
        {secret}
      </code>
      {children}
    </Dialog>
  );
}

/** The projects that the session may see, including its own while that has no board. */
export function useProjects(session: Session): Asked<string[]> {
  return useAsk("projects", async (signal) => {
    const { projects } = await ask<Schemas["Projects"]>(consoleApi.GET("/v1/projects", { signal }));
    return isOperator(session) || projects.includes(session.project) ? projects : [session.project];
  });
}

/** The project of a view: the key's own, or a chosen one. A new name is allowed. */
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

/** The value, once it has not changed for so many milliseconds. */
export function useSettled<T>(value: T, milliseconds: number): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), milliseconds);
    return () => clearTimeout(timer);
  }, [value, milliseconds]);
  return settled;
}
