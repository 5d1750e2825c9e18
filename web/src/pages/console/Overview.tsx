/** The deployment at a glance: health, rates, and the archive's lag. */
import { type ReactNode, useEffect, useState } from "react";
import { ask, type Schemas } from "../../lib/client";
import { Problem } from "../../lib/problem";
import { useAsk } from "../../lib/useAsk";
import { count, counted, short } from "../../lib/words";
import { Link } from "../../router/router";
import { Badge, EmptyState, LinePlot, numberCell, Sheet, Table } from "../../ui";
import styles from "./console.module.css";
import type { ViewProps } from "./index";
import { type Job, stateOf, useJobs } from "./Jobs";
import { Heading, Told, Wide } from "./parts";
import { bytes, type Figures, perSecond, recordedBy, withLook } from "./rates";
import { consoleApi } from "./session";

const EVERY = 2_000; // milliseconds between two samples

// Kept while the page is open, across views.
let kept: readonly Figures[] = [];

export function Overview(_: ViewProps) {
  const figures = useAsk("overview", async (signal) => ask<Schemas["Figures"]>(consoleApi.GET("/v1/overview", { signal })), { every: EVERY });
  const [looks, setLooks] = useState(kept);
  useEffect(() => {
    if (!figures.data) return;
    kept = withLook(kept, figures.data);
    setLooks(kept);
  }, [figures.data]);
  return (
    <>
      <Heading title="Overview" about={`Updated every ${EVERY / 1000} seconds, for all processes`} />
      <Health />
      <Told asked={figures}>{(now) => <Numbers now={now} looks={looks} />}</Told>
    </>
  );
}

function Health() {
  const ready = useAsk("ready", readiness, { every: 5_000 });
  const jobs = useJobs();
  const failing = (jobs.data ?? []).filter((job) => stateOf(job).tone === "wrong");
  return (
    <Sheet isPadded aria-label="Health" className={styles["health"] ?? ""}>
      <h2>Health</h2>
      <Told asked={ready}>
        {({ checks, warnings }) => (
          <>
            <ul role="list" className={styles["checks"]}>
              {Object.entries(checks).map(([name, state]) => (
                <li key={name}>
                  <Badge tone={state === "ok" ? "leaf" : "wrong"}>
                    {name}: {state}
                  </Badge>
                </li>
              ))}
              <li>
                <Badge tone={failing.length ? "wrong" : jobs.data ? "leaf" : undefined}>{jobs.data ? jobsWords(jobs.data, failing) : "jobs: unknown"}</Badge>
              </li>
            </ul>
            {warnings.map((warning) => (
              <p key={warning} className={styles["warning"]}>
                {warning}
              </p>
            ))}
          </>
        )}
      </Told>
    </Sheet>
  );
}

function jobsWords(jobs: readonly Job[], failing: readonly Job[]): string {
  const running = jobs.filter((job) => stateOf(job).label === "running");
  if (failing.length) return `jobs: ${failing.map((job) => job.name).join(", ")} failing`;
  return running.length ? `jobs: ${running.map((job) => job.name).join(", ")} running` : `jobs: ${count(jobs.length)} ok`;
}

interface Readiness {
  checks: Record<string, string>;
  warnings: string[];
}

/** 503 is an answer too. */
async function readiness(signal: AbortSignal): Promise<Readiness> {
  const { data, error, response } = await consoleApi.GET("/readyz", { signal });
  const said = (data ?? error ?? {}) as Partial<Readiness>;
  if (!said.checks) throw new Problem(response.status, "Not ready", "The server does not report its health.");
  return { checks: said.checks, warnings: said.warnings ?? [] };
}

function Numbers({ now, looks }: { now: Figures; looks: readonly Figures[] }) {
  const { valkey, postgres, journal } = now;
  return (
    <>
      <div className={styles["plots"]}>
        <Rate title="Calls recorded" unit="per second" about="A call has the submissions that arrived together" looks={looks} values={perSecond(looks, (look) => look.journal.recorded)} />
        <Rate title="Rows archived" unit="per second" about="Submissions and removals in PostgreSQL" looks={looks} values={perSecond(looks, (look) => look.postgres?.rows)} />
        <Rate
          title="Archive lag"
          unit="seconds"
          about={journal.waiting ? `${counted(journal.waiting, "call")} (${bytes(journal.bytes)}) waiting` : "Nothing is waiting"}
          looks={looks}
          values={looks.map((look) => look.journal.age_seconds)}
        />
        <Rate
          title="Valkey memory"
          unit={valkey.memory_limit_bytes ? `of ${bytes(valkey.memory_limit_bytes)}` : "no limit set"}
          about={`${valkey.name} ${valkey.version}, ${counted(valkey.nodes, "node")}`}
          looks={looks}
          values={looks.map((look) => look.valkey.memory_bytes)}
          format={bytes}
        />
        <Rate title="Valkey commands" unit="per second" about={counted(valkey.clients, "client")} looks={looks} values={perSecond(looks, (look) => look.valkey.commands)} />
        <Sheet isPadded aria-label="Stores">
          <h2>Stores</h2>
          <dl className={styles["facts"]}>
            <Fact name={valkey.name}>{valkey.version}</Fact>
            <Fact name="PostgreSQL">{postgres ? postgres.version : "does not answer"}</Fact>
            <Fact name="Database">{postgres ? bytes(postgres.bytes) : "—"}</Fact>
            <Fact name="Archived up to">
              <time dateTime={journal.watermark}>{new Date(journal.watermark).toLocaleTimeString()}</time>
            </Fact>
            <Fact name="Dead letters">
              <Link to={["console", "dead-letters"]}>{count(journal.dead_letters)}</Link>
            </Fact>
          </dl>
        </Sheet>
      </div>
      <Sheet as="div">
        {now.boards.length ? (
          <Wide label="Journals">
            <Table caption="Journals of boards, the longest first">
              <thead>
                <tr>
                  <th scope="col">Board</th>
                  <th scope="col" className={numberCell}>
                    Calls per second
                  </th>
                  <th scope="col" className={numberCell}>
                    Recorded
                  </th>
                  <th scope="col" className={numberCell}>
                    Waiting
                  </th>
                </tr>
              </thead>
              <tbody>
                {now.boards.map((board) => (
                  <tr key={`${board.project}/${board.board}`}>
                    <th scope="row">
                      <Link to={["console", "boards", board.project, board.board]}>
                        {board.project}/{board.board}
                      </Link>
                    </th>
                    <td className={numberCell}>{lately(perSecond(looks, recordedBy(board.project, board.board)))}</td>
                    <td className={numberCell}>{count(board.recorded)}</td>
                    <td className={numberCell}>{count(board.waiting)}</td>
                  </tr>
                ))}
              </tbody>
            </Table>
          </Wide>
        ) : (
          <EmptyState title="No boards yet" action={<Link to={["console", "new"]}>Define one</Link>} />
        )}
      </Sheet>
    </>
  );
}

const lately = (values: readonly (number | null)[]): string => {
  const last = values.at(-1);
  return last === null || last === undefined ? "—" : short(last);
};

const Fact = ({ name, children }: { name: string; children: ReactNode }) => (
  <div>
    <dt>{name}</dt>
    <dd>{children}</dd>
  </div>
);

interface RateProps {
  title: string;
  unit: string;
  about: string;
  looks: readonly Figures[];
  /** One value for each sample, or for each but the first. */
  values: readonly (number | null)[];
  format?: (value: number) => string;
}

function Rate({ title, unit, about, looks, values, format = short }: RateProps) {
  const last = values.findLast((value) => value !== null);
  const told = last === undefined || last === null ? "—" : format(last);
  const behind = looks.length - values.length;
  const samples = values.map((value, index) => ({ value, label: new Date(looks[index + behind]?.at ?? 0).toLocaleTimeString() }));
  return (
    <Sheet isPadded aria-label={title} className={styles["rate"] ?? ""}>
      <h2>{title}</h2>
      <p>
        <strong className={styles["figure"]}>{told}</strong> <span className={styles["soft"]}>{unit}</span>
      </p>
      <LinePlot label={`${title}: ${told} ${unit}, of ${counted(samples.length, "sample")}`} samples={samples} height={110} width={300} fromZero format={format} />
      <p className={styles["soft"]}>{about}</p>
    </Sheet>
  );
}
