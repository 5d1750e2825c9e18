/** The console for operators, behind its own session. */
import { type ComponentType, useEffect, useRef } from "react";
import type { PageProps } from "../../app/App";
import { Link } from "../../router/router";
import { useAsk } from "../../lib/useAsk";
import { Badge, Button, EmptyState, ErrorState, say, Skeleton, Title } from "../../ui";
import { asProblem } from "../../lib/problem";
import { BoardPage } from "./BoardPage";
import { Boards } from "./Boards";
import styles from "./console.module.css";
import { DeadLetters } from "./DeadLetters";
import { Doctor } from "./Doctor";
import { EditBoard, NewBoard } from "./EditBoard";
import { Jobs } from "./Jobs";
import { Keys } from "./Keys";
import { Overview } from "./Overview";
import { Secrets } from "./Secrets";
import { findSession, isOperator, type Session, signOut, useSession } from "./session";
import { SignIn } from "./SignIn";

/** The props of a view: the session, and the path after the view's name. */
export interface ViewProps {
  session: Session;
  path: readonly string[];
}

interface View {
  name: string;
  label: string;
  show: ComponentType<ViewProps>;
  /** Only for keys of every project. */
  isForOperators?: boolean;
  /** Not in the navigation: the view that it belongs to. */
  within?: string;
}

const VIEWS: readonly View[] = [
  { name: "overview", label: "Overview", show: Overview, isForOperators: true },
  { name: "boards", label: "Boards", show: BoardsOrOne },
  { name: "new", label: "New board", show: NewBoard, within: "boards" },
  { name: "keys", label: "Keys", show: Keys },
  { name: "secrets", label: "Secrets", show: Secrets },
  { name: "jobs", label: "Jobs", show: Jobs, isForOperators: true },
  { name: "dead-letters", label: "Dead letters", show: DeadLetters, isForOperators: true },
  { name: "doctor", label: "Doctor", show: Doctor, isForOperators: true },
];

export default function Console({ path }: PageProps) {
  const { session, why } = useSession();
  const found = useAsk(session === undefined ? "session" : null, findSession);
  if (session === undefined && found.problem) {
    return (
      <>
        <h1 className="unseen">Console</h1>
        <ErrorState problem={found.problem} again={found.again} />
      </>
    );
  }
  if (session === undefined) {
    return (
      <div role="status" aria-label="Loading">
        <Skeleton width="40%" />
      </div>
    );
  }
  return session ? <SignedIn session={session} path={path} /> : <SignIn why={why} />;
}

function SignedIn({ session, path }: ViewProps) {
  const views = VIEWS.filter((view) => !view.isForOperators || isOperator(session));
  const [name = views[0]?.name ?? "", ...rest] = path;
  const view = views.find((view) => view.name === name);
  const shown = useRef<HTMLDivElement>(null);
  const place = path.join("/");
  const before = useRef(place);
  useEffect(() => {
    // Moves the focus to the heading after a link.
    if (before.current !== place) shown.current?.querySelector<HTMLElement>("h1")?.focus();
    before.current = place;
  }, [place]);
  return (
    <div className={styles["console"]}>
      <div className={styles["bar"]}>
        <nav aria-label="Console" className={styles["views"]}>
          {views
            .filter((each) => !each.within)
            .map((each) => (
              <Link key={each.name} to={["console", each.name]} aria-current={each.name === (view?.within ?? name) ? "page" : undefined}>
                {each.label}
              </Link>
            ))}
        </nav>
        <div className={styles["who"]}>
          <Badge tone="leaf">{isOperator(session) ? "every project" : session.project}</Badge>
          <Button small onClick={() => void leave()}>
            Sign out
          </Button>
        </div>
      </div>
      <div ref={shown}>{view ? <view.show session={session} path={rest} /> : <NotHere name={name} />}</div>
    </div>
  );
}

async function leave(): Promise<void> {
  try {
    await signOut();
  } catch (error) {
    say(asProblem(error).message, { isBad: true });
  }
}

function BoardsOrOne({ session, path }: ViewProps) {
  const [project, board, action] = path;
  if (!project || !board) return <Boards session={session} path={path} />;
  return action === "edit" ? (
    <EditBoard key={place(path)} session={session} path={path} />
  ) : (
    <BoardPage key={place(path)} session={session} path={path} />
  );
}

const place = (path: readonly string[]): string => path.join("/");

function NotHere({ name }: { name: string }) {
  const isClosed = VIEWS.some((view) => view.name === name);
  return (
    <>
      <Title>Console</Title>
      <h1 className="unseen" tabIndex={-1}>
        Not here
      </h1>
      <EmptyState title={isClosed ? "This view needs a key for every project" : "Page not found"} action={<Link to={["console", "boards"]}>Go to the boards</Link>}>
        {isClosed ? "It shows the whole deployment." : "There is no page at this address."}
      </EmptyState>
    </>
  );
}
