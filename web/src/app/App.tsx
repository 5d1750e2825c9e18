/** The frame around every page, and the choice of the page. */
import { type ComponentType, lazy, Suspense, useEffect, useRef } from "react";
import { EmptyState, OfflineBanner, Skeleton, Title, Toasts } from "../ui";
import { useIsStudent } from "../lib/access";
import { Link, useAddress } from "../router/router";
import styles from "./app.module.css";
import { Catch } from "./Catch";
import { Footer, Masthead, OF_STUDENTS } from "./Masthead";

/** The path after the page's own name. */
export interface PageProps {
  path: readonly string[];
}

// A page is loaded when it is first opened. Its folder has an index.tsx with a default export.
const PAGES: Record<string, ComponentType<PageProps>> = {
  "": lazy(() => import("../pages/home")),
  leaderboards: lazy(() => import("../pages/leaderboards")),
  boards: lazy(() => import("../pages/boards")),
  console: lazy(() => import("../pages/console")),
  docs: lazy(() => import("../pages/docs")),
};

export function App() {
  const { path } = useAddress();
  const isStudent = useIsStudent();
  const [asked = "", ...rest] = path;
  const name = isStudent && !asked ? "leaderboards" : asked;
  const isTheirs = !isStudent || OF_STUDENTS.includes(name);
  const Page = isTheirs && Object.hasOwn(PAGES, name) ? PAGES[name] : undefined;
  const main = useRef<HTMLElement>(null);
  const shown = useRef(name);

  // A new page starts at its top.
  useEffect(() => {
    if (shown.current === name) return;
    shown.current = name;
    main.current?.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }, [name]);

  return (
    <div className={styles["frame"]}>
      <a className={styles["skip"]} href="#main" onClick={skip}>
        Skip to the page
      </a>
      <OfflineBanner />
      <Masthead page={name} />
      <main id="main" ref={main} tabIndex={-1} className={styles["main"]}>
        <Catch key={name}>
          <Suspense fallback={<Loading />}>{Page ? <Page path={rest} /> : <NotFound isStudent={isStudent} />}</Suspense>
        </Catch>
      </main>
      <Footer />
      <Toasts />
    </div>
  );
}

// With <base>, a bare fragment would go to the root.
function skip(event: { preventDefault: () => void }): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

const Loading = () => (
  <div className={styles["loading"]} role="status" aria-label="Loading">
    <Skeleton width="40%" />
    <Skeleton />
    <Skeleton width="80%" />
  </div>
);

const NotFound = ({ isStudent }: { isStudent: boolean }) => (
  <>
    <Title>Not found</Title>
    <h1 className="unseen">Not found</h1>
    <EmptyState title="Page not found" action={isStudent ? <Link to={["leaderboards"]}>Go to the leaderboards</Link> : <Link to={["boards"]}>Go to the boards</Link>}>
      There is no page at this address.
    </EmptyState>
  </>
);
