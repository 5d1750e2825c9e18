/** The projects and their boards. */
import { useState } from "react";
import { counted, list, readable } from "../../lib/words";
import { Link } from "../../router/router";
import { Badge, EmptyState, ErrorState, Input, Sheet, Skeleton, Title } from "../../ui";
import { type Definition, useBoards, useProjects } from "./asking";
import styles from "./boards.module.css";
import { labelOf } from "./view";

const MOST_OPEN = 12; // projects whose boards are listed at once
const MOST_SHOWN = 6; // boards of one project among several
const MANY = 8; // from so many projects on, there is a search field

/** For every project that the key may read, or one. */
export function Directory({ project }: { project: string }) {
  return project ? <OneProject project={project} /> : <AllProjects />;
}

function OneProject({ project }: { project: string }) {
  return (
    <>
      <Title>{project}</Title>
      <p className={styles["crumbs"]}>
        <Link to={["boards"]}>All boards</Link>
      </p>
      <h1>{project}</h1>
      <Boards project={project} />
    </>
  );
}

function AllProjects() {
  const [looked, setLooked] = useState("");
  const { data, problem, again } = useProjects();
  const found = data?.filter((name) => name.toLowerCase().includes(looked.trim().toLowerCase())) ?? [];
  return (
    <>
      <Title>Boards</Title>
      <div className={styles["heading"]}>
        <h1>Boards</h1>
        {data && data.length >= MANY && (
          <Input label="Find a project" type="search" value={looked} onChange={(event) => setLooked(event.target.value)} />
        )}
      </div>
      {problem && !data && <ErrorState problem={problem} again={again} />}
      {!problem && !data && <Loading />}
      {data?.length === 0 && (
        <EmptyState title="No boards yet">
          <code>laurels demo</code> makes an example.
        </EmptyState>
      )}
      {data && data.length > 0 && found.length === 0 && <EmptyState title="No such project">No project has “{looked.trim()}” in its name.</EmptyState>}
      {found.length > MOST_OPEN ? (
        <ul role="list" className={styles["names"]}>
          {found.map((name) => (
            <li key={name}>
              <Link to={["boards", name]}>{name}</Link>
            </li>
          ))}
        </ul>
      ) : (
        found.map((name) => (
          <section key={name} className={styles["project"]} aria-labelledby={`project-${name}`}>
            <h2 id={`project-${name}`}>
              <Link to={["boards", name]}>{name}</Link>
            </h2>
            <Boards project={name} most={found.length > 1 ? MOST_SHOWN : Infinity} />
          </section>
        ))
      )}
    </>
  );
}

function Boards({ project, most = Infinity }: { project: string; most?: number }) {
  const { data, problem, again } = useBoards(project);
  if (problem && !data) return <ErrorState problem={problem} again={again} />;
  if (!data) return <Loading />;
  if (!data.length) return <EmptyState title="No boards here">Define a board in the console or with <code>laurels apply</code>.</EmptyState>;
  return (
    <>
      <ul role="list" className={styles["boards"]}>
        {data.slice(0, most).map(({ board, definition }) => (
          <li key={board}>
            <Sheet as="div" isPadded className={styles["card"] ?? ""}>
              <h3>
                <Link to={["boards", project, board]}>{board}</Link>
              </h3>
              <p>{about(definition)}</p>
              <p className={styles["badges"]}>
                {definition.windows.map((window) => (
                  <Badge key={labelOf(window)}>{readable(labelOf(window))}</Badge>
                ))}
              </p>
            </Sheet>
          </li>
        ))}
      </ul>
      {data.length > most && (
        <p className={styles["more"]}>
          <Link to={["boards", project]}>
            All {data.length} boards of {project}
          </Link>
        </p>
      )}
    </>
  );
}

const SCORING: Record<Definition["aggregate"], string> = {
  best: "Best score counts",
  last: "Last score counts",
  first: "First score counts",
  sum: "Scores add up",
};

function about({ aggregate, order, groups, rating }: Definition): string {
  const what = rating ? `Ratings from matches (${rating.system})` : SCORING[aggregate];
  const lowest = order === "asc" ? ", lowest first" : "";
  const cuts = groups.length ? `; also by ${list(groups.map((group) => group.join(" and ")))}` : "";
  return `${what}${lowest}${cuts}.`;
}

const Loading = () => (
  <div className={styles["loading"]} role="status" aria-label="Loading">
    <Skeleton width="45%" />
    <Skeleton width="70%" />
  </div>
);

export const entriesWords = (total: number): string => counted(total, "entry", "entries");
