/** Background jobs: when they are due, how they went, and a button to run one now. */
import { useState } from "react";
import { ask, type Schemas } from "../../lib/client";
import { serverNow } from "../../lib/clock";
import { asProblem } from "../../lib/problem";
import { useAsk } from "../../lib/useAsk";
import { ago, count } from "../../lib/words";
import { Badge, Button, say, Sheet, Table } from "../../ui";
import styles from "./console.module.css";
import type { ViewProps } from "./index";
import { Heading, Of, Told, Wide } from "./parts";
import { consoleApi } from "./session";

export type Job = Schemas["Job"];

export const useJobs = () =>
  useAsk("jobs", async (signal) => (await ask<Schemas["Jobs"]>(consoleApi.GET("/v1/jobs", { signal }))).jobs, { every: 3_000 });

/** The most important state: running, failed, requested, or ok. */
export function stateOf(job: Job): { label: string; tone: "leaf" | "gold" | "wrong" | undefined } {
  const isRunning = job.last_started !== null && (job.last_finished === null || job.last_started > job.last_finished);
  if (isRunning) return { label: "running", tone: "gold" };
  if (job.attempts > 0) return { label: `failed ${count(job.attempts)} ×`, tone: "wrong" };
  if (job.requested_at) return { label: "requested", tone: "gold" };
  return job.last_succeeded ? { label: "ok", tone: "leaf" } : { label: "not run yet", tone: undefined };
}

export function Jobs(_: ViewProps) {
  const jobs = useJobs();
  const [asking, setAsking] = useState("");
  const run = async (name: string) => {
    setAsking(name);
    try {
      await ask(consoleApi.POST("/v1/jobs/{name}/run", { params: { path: { name } } }));
      say(`A worker will run ${name} within seconds`);
      jobs.again();
    } catch (error) {
      say(asProblem(error).message, { isBad: true });
    }
    setAsking("");
  };
  const told = (moment: string | null) => (moment ? <time dateTime={moment}>{ago(moment, serverNow())}</time> : "—");
  return (
    <>
      <Heading title="Jobs" about="Background work, shared by all workers. Each run is done once." />
      <Sheet as="div">
        <Told asked={jobs}>
          {(listed) => (
            <Wide label="Jobs">
              <Table caption="Jobs">
                <thead>
                  <tr>
                    <th scope="col">Job</th>
                    <th scope="col">State</th>
                    <th scope="col">Last run</th>
                    <th scope="col">Next due</th>
                    <th scope="col">Runs</th>
                    <th scope="col">
                      <span className="unseen">Actions</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {listed.map((job) => {
                    const state = stateOf(job);
                    return (
                      <tr key={job.name}>
                        <th scope="row">{job.name}</th>
                        <td>
                          <Badge tone={state.tone}>{state.label}</Badge>
                          {state.label === "running" && job.progress && <p className={styles["soft"]}>{job.progress}</p>}
                          {job.attempts > 0 && <p className={styles["wrong"]}>{job.error.split("\n")[0]}</p>}
                        </td>
                        <td>
                          {told(job.last_finished)}
                          <p className={styles["soft"]}>{job.last_result}</p>
                        </td>
                        <td>{told(job.retry_at ?? job.next_due)}</td>
                        <td className="numbers">
                          {count(job.succeeded)}
                          {job.failed > 0 && <span className={styles["wrong"]}>, {count(job.failed)} failed</span>}
                        </td>
                        <td className={styles["end"]}>
                          <Button small disabled={asking === job.name} onClick={() => void run(job.name)}>
                            <Of does="Run" what={job.name} more=" now" />
                          </Button>
                        </td>
                      </tr>
                    );
                  })}
                </tbody>
              </Table>
            </Wide>
          )}
        </Told>
      </Sheet>
    </>
  );
}
