/** One board: its best entries, a form to submit a score, and removal of members. */
import { type FormEvent, useState } from "react";
import { ask, type Schemas } from "../../lib/client";
import { asProblem, Problem } from "../../lib/problem";
import { useAsk } from "../../lib/useAsk";
import { count, counted, readable, score as shown } from "../../lib/words";
import { Link, navigate, useQuery } from "../../router/router";
import { Button, buttonClass, EmptyState, Input, numberCell, Rank, say, Score, Select, Sheet, Table, TimeLeft } from "../../ui";
import styles from "./console.module.css";
import { labelOf } from "./definition";
import type { ViewProps } from "./index";
import { Confirm, Heading, Of, Told, Wide } from "./parts";
import { consoleApi } from "./session";

const TOP = 25;

export function BoardPage({ path: [project = "", name = ""] }: ViewProps) {
  const at = { project, board: name };
  const board = useAsk(`board ${project}/${name}`, async (signal) =>
    ask<Schemas["Board"]>(consoleApi.GET("/v1/projects/{project}/boards/{board}", { params: { path: at }, signal })),
  );
  const [isDropping, setDropping] = useState(false);
  return (
    <>
      <Heading title={name} about={project}>
        <Link to={["boards", project, name]} className={buttonClass()}>
          Explore
        </Link>
        <Link to={["console", "boards", project, name, "edit"]} className={buttonClass()}>
          Edit
        </Link>
        <Button look="danger" onClick={() => setDropping(true)}>
          Drop…
        </Button>
      </Heading>
      {isDropping && (
        <Confirm
          title={`Drop ${project}/${name}?`}
          does="Drop the board"
          typed={name}
          onClose={() => setDropping(false)}
          act={async () => {
            await ask(consoleApi.DELETE("/v1/projects/{project}/boards/{board}", { params: { path: at, query: { allow_drop: "all" } } }));
            say(`${project}/${name} is dropped`);
            navigate(["console", "boards", project], {}, { replace: true });
          }}
        >
          <p>This drops its windows, groups and entries, its archived tables and its journal. It cannot be undone.</p>
        </Confirm>
      )}
      <Told asked={board}>{(data) => <AtWork board={data} />}</Told>
    </>
  );
}

function AtWork({ board }: { board: Schemas["Board"] }) {
  const { definition } = board;
  const at = { project: board.project, board: board.board };
  const labels = definition.windows.map(labelOf);
  const [{ period }, change] = useQuery({ period: labels[0] ?? "" });
  const page = useAsk(
    `top of ${at.project}/${at.board} ${period} ${board.version}`,
    async (signal) => {
      const params = { path: at, query: { period, limit: TOP } };
      return ask<Schemas["Page"]>(consoleApi.GET("/v1/projects/{project}/boards/{board}/entries", { params, signal }));
    },
    { every: 3_000, keep: true },
  );
  const [leaving, setLeaving] = useState<string>();
  return (
    <div className={styles["columns"]}>
      <Sheet as="div">
        <div className={styles["over"]}>
          <Select label="Window" isBare options={labels.map((value) => ({ value, label: readable(value) }))} value={period} onChoose={(period) => change({ period })} />
          <p className={styles["soft"]}>
            {page.data && counted(page.data.total, "entry", "entries")}
            {page.data?.next_reset_at && (
              <>
                {" · resets in "}
                <TimeLeft until={page.data.next_reset_at} onEnd={page.again} />
              </>
            )}
          </p>
        </div>
        <Told asked={page}>
          {({ entries, slot }) =>
            entries.length ? (
              <Wide label="The best">
                <Table caption={`The best of ${period} ${slot}`}>
                  <thead>
                    <tr>
                      <th scope="col">Rank</th>
                      <th scope="col">Member</th>
                      <th scope="col" className={numberCell}>
                        Score
                      </th>
                      <th scope="col">
                        <span className="unseen">Actions</span>
                      </th>
                    </tr>
                  </thead>
                  <tbody>
                    {entries.map((entry) => (
                      <tr key={entry.member}>
                        <td>
                          <Rank rank={entry.rank} />
                        </td>
                        <th scope="row" className={styles["member"]}>
                          {entry.member}
                        </th>
                        <td className={numberCell}>
                          <Score value={entry.score} />
                        </td>
                        <td className={styles["end"]}>
                          <Button small look="quiet" onClick={() => setLeaving(entry.member)}>
                            <Of does="Remove" what={entry.member} more="…" />
                          </Button>
                        </td>
                      </tr>
                    ))}
                  </tbody>
                </Table>
              </Wide>
            ) : (
              <EmptyState title="No entries yet">The first score makes the first entry.</EmptyState>
            )
          }
        </Told>
      </Sheet>
      <div className={styles["fields"]}>
        <SubmitScore board={board} onDone={page.again} />
        <FindMember board={board} period={period} onLeave={setLeaving} />
      </div>
      {leaving !== undefined && (
        <Confirm
          title={`Remove ${leaving}?`}
          does="Remove the member"
          onClose={() => setLeaving(undefined)}
          act={async () => {
            const params = { path: { ...at, member: leaving } };
            await ask(consoleApi.DELETE("/v1/projects/{project}/boards/{board}/entries/{member}", { params }));
            say(`${leaving} is removed`);
            page.again();
          }}
        >
          <p>
            This removes the member from every live window and group of <strong>{at.board}</strong>. Archived windows do not change.
          </p>
        </Confirm>
      )}
    </div>
  );
}

/** Finds members beyond the best, to remove them. */
function FindMember({ board, period, onLeave }: { board: Schemas["Board"]; period: string; onLeave: (member: string) => void }) {
  const [typed, setTyped] = useState("");
  const [member, setMember] = useState("");
  const found = useAsk(member ? `${board.project}/${board.board} ${period} ${member}` : null, async (signal) => {
    const params = { path: { project: board.project, board: board.board, member }, query: { period } };
    return ask<Schemas["Standing"]>(consoleApi.GET("/v1/projects/{project}/boards/{board}/entries/{member}", { params, signal }));
  });
  const find = (event: FormEvent) => {
    event.preventDefault();
    if (typed === member) found.again();
    setMember(typed);
  };
  return (
    <Sheet isPadded>
      <h2>Find a member</h2>
      <form onSubmit={find} className={styles["form"]}>
        <Input label="Exact name" required value={typed} onChange={(event) => setTyped(event.target.value)} />
        <Button type="submit">Find</Button>
      </form>
      <div role="status" className={styles["found"]}>
        {found.data && (
          <>
            <p>
              <strong>{found.data.member}</strong> is at rank {count(found.data.rank)} of {count(found.data.total)} with <Score value={found.data.score} />.
            </p>
            <Button small look="danger" onClick={() => onLeave(member)}>
              Remove…
            </Button>
          </>
        )}
        {found.problem && <p className={styles["wrong"]}>{found.problem.status === 404 ? `${member} has no entry in ${period}.` : found.problem.message}</p>}
      </div>
    </Sheet>
  );
}

/** One id for each submission: sent again after an unknown outcome, it counts once. */
const newId = (): string => `console-${[...crypto.getRandomValues(new Uint32Array(4))].map((part) => part.toString(36)).join("")}`;

function SubmitScore({ board, onDone }: { board: Schemas["Board"]; onDone: () => void }) {
  const { definition } = board;
  const dimensions = [...new Set(definition.groups.flat())];
  const [member, setMember] = useState("");
  const [score, setScore] = useState("");
  const [groups, setGroups] = useState<Record<string, string>>({});
  const [problem, setProblem] = useState<Problem>();
  const [result, setResult] = useState("");
  const [isSending, setSending] = useState(false);
  const [id, setId] = useState(newId);
  if (definition.rating) {
    return (
      <Sheet isPadded>
        <h2>Submit a score</h2>
        <p className={styles["soft"]}>
          Scores of this board come from matches, by {definition.rating.system}. Report them with <code>POST …/matches</code>.
        </p>
      </Sheet>
    );
  }
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setSending(true);
    setProblem(undefined);
    try {
      const given = Object.fromEntries(Object.entries(groups).filter(([, value]) => value.trim()));
      // The digits of an int64 are sent as text: a browser's number would round them.
      const value = definition.score === "int64" || !Number.isFinite(Number(score)) || !score.trim() ? score.trim() : Number(score);
      const body = { id, member, score: value, ...(Object.keys(given).length ? { groups: given } : {}) } as Schemas["Submission"];
      const params = { path: { project: board.project, board: board.board } };
      const answer = await ask<Schemas["Submitted"]>(consoleApi.POST("/v1/projects/{project}/boards/{board}/scores", { params, body }));
      setResult(`${answer.member} has ${answer.score === null ? "no entry" : shown(answer.score)}${answer.rank ? `, rank ${answer.rank}` : ""}${answer.applied ? "" : "; nothing changed"}.`);
      setScore("");
      setId(newId());
      onDone();
    } catch (error) {
      setResult("");
      setProblem(asProblem(error));
    }
    setSending(false);
  };
  const isElsewhere = problem && !problem.of("member") && !problem.of("score") && !problem.of("groups");
  return (
    <Sheet isPadded>
      <h2>Submit a score</h2>
      <form onSubmit={(event) => void submit(event)} className={styles["form"]}>
        <Input label="Member" required value={member} wrong={problem?.of("member") || undefined} onChange={(event) => setMember(event.target.value)} />
        <Input
          label="Score"
          required
          inputMode="decimal"
          value={score}
          wrong={problem?.of("score") || undefined}
          hint={definition.score === "int64" ? "A whole number, exact to 64 bits." : "A number."}
          onChange={(event) => setScore(event.target.value)}
        />
        {dimensions.map((name) => (
          <Input
            key={name}
            label={readable(name)}
            value={groups[name] ?? ""}
            wrong={problem?.of(`groups.${name}`) || problem?.of("groups") || undefined}
            hint="Leave it empty to rank only in the whole board."
            onChange={(event) => setGroups({ ...groups, [name]: event.target.value })}
          />
        ))}
        <Button type="submit" look="primary" disabled={isSending}>
          Submit
        </Button>
        <p role="status" className={styles["soft"]}>
          {result}
        </p>
        {isElsewhere && (
          <p role="alert" className={styles["wrong"]}>
            {problem.message}
          </p>
        )}
      </form>
    </Sheet>
  );
}
