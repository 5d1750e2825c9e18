/** A member, found by its exact name: standing, neighbours, and past windows. */
import { type FormEvent, useEffect, useState } from "react";
import type { Schemas } from "../../lib/client";
import type { Asked } from "../../lib/useAsk";
import { count, readable, score, share } from "../../lib/words";
import { Link } from "../../router/router";
import { Button, ErrorState, Input, LinePlot, numberCell, Rank, Score, Sheet, Skeleton, Table } from "../../ui";
import { type BoardName, type Definition, useAround, useHistory } from "./asking";
import type { ChangeView } from "./BoardPage";
import styles from "./boards.module.css";
import { MemberName, named } from "./MemberName";
import type { Ranking } from "./ranking";
import { keep, useRemembered } from "./remembered";
import { labelOf, type View, type Where } from "./view";

interface MemberPanelProps {
  name: BoardName;
  definition: Definition;
  where: Where;
  view: View;
  ranking: Ranking;
  standing: Asked<Schemas["Standing"]>;
  friends: readonly string[];
  onFriends: (members: readonly string[]) => void;
  change: ChangeView;
}

export function MemberPanel(props: MemberPanelProps) {
  const { name, view, change } = props;
  const me = useRemembered("me", name.project);
  const [typed, setTyped] = useState(view.member);
  useEffect(() => setTyped(view.member), [view.member]);
  const find = (member: string) => change(member ? { member, rank: "", show: "", snapshot: "" } : { member: "" });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    find(typed.trim());
  };
  return (
    <Sheet as="div" isPadded>
      <h2>Find a member</h2>
      <form role="search" className={styles["line"]} onSubmit={submit}>
        <Input label="Member" isBare type="search" placeholder="Exact name" maxLength={256} value={typed} onChange={(event) => setTyped(event.target.value)} />
        <Button type="submit">Find</Button>
        {me && me !== view.member && (
          <Button look="quiet" onClick={() => find(me)} title={me}>
            Me
          </Button>
        )}
      </form>
      {view.member && <Found key={view.member} {...props} />}
    </Sheet>
  );
}

function Found({ name, definition, where, view, ranking, standing, friends, onFriends, change }: MemberPanelProps) {
  const { member } = view;
  const known = standing.data?.member === member ? standing.data : undefined;
  const isAbsent = standing.problem?.status === 404;
  return (
    <div className={styles["found"]}>
      <div role="status">
        {isAbsent && <p className={styles["absent"]}>“{member}” has no entry in this window. Names are exact.</p>}
        {!isAbsent && known && <Summary standing={known} />}
      </div>
      {!known && !standing.problem && <Skeleton width="60%" />}
      {standing.problem && !isAbsent && !known && <ErrorState problem={standing.problem} again={standing.again} />}
      <p className={styles["line"]}>
        {known && !isAbsent && (
          <Button small onClick={() => change({ rank: "", show: "", snapshot: "" })}>
            Show in the ranking
          </Button>
        )}
        <MeButton project={name.project} member={member} />
        {friends.includes(member) ? (
          <Button small look="quiet" onClick={() => onFriends(friends.filter((friend) => friend !== member))}>
            Remove from friends
          </Button>
        ) : (
          <Button small look="quiet" onClick={() => onFriends([...friends, member])}>
            Add to friends
          </Button>
        )}
        <Button small look="quiet" onClick={() => change({ member: "", ...(view.rank === "1" && { rank: "" }) })}>
          Clear
        </Button>
      </p>
      {known && !isAbsent && <Around name={name} member={member} where={where} beat={ranking.beat} change={change} />}
      {known?.metadata && !isAbsent && <Metadata metadata={known.metadata} />}
      <Past name={name} definition={definition} member={member} where={where} turn={where.slot ? "" : (ranking.head?.slot ?? "")} />
    </div>
  );
}

function Summary({ standing }: { standing: Schemas["Standing"] }) {
  const best = Math.max(standing.rank / standing.total, 0.001);
  return (
    <p className={styles["standing"]}>
      <strong>{count(standing.rank)}</strong>
      <span>
        of {count(standing.total)} · top {share(best)} · score {score(standing.score)}
        {standing.dense_rank !== undefined && ` · dense rank ${count(standing.dense_rank)}`}
      </span>
    </p>
  );
}

function MeButton({ project, member }: { project: string; member: string }) {
  const me = useRemembered("me", project);
  const isMe = me === member;
  return (
    <Button small look="quiet" aria-pressed={isMe} onClick={() => keep("me", project, isMe ? "" : member)}>
      {isMe ? "Not me" : "This is me"}
    </Button>
  );
}

function Around({ name, member, where, beat, change }: { name: BoardName; member: string; where: Where; beat: number; change: ChangeView }) {
  const { data } = useAround(name, member, where, beat);
  if (!data) return null;
  return (
    <Table caption={`Around ${member}`} className={styles["around"] ?? ""}>
      <tbody>
        {data.entries.map((entry) => (
          <tr key={entry.member} className={entry.member === member ? styles["outstanding"] : undefined}>
            <td className={styles["rankCell"]}>
              <Rank rank={entry.rank} />
            </td>
            <th scope="row" className={styles["memberCell"]}>
              <button type="button" title={entry.member} aria-current={entry.member === member || undefined} onClick={() => change({ member: entry.member, rank: "", show: "" })}>
                <MemberName {...named(entry)} />
              </button>
            </th>
            <td className={numberCell}>
              <Score value={entry.score} />
            </td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

/** The entry's metadata. */
function Metadata({ metadata }: { metadata: object }) {
  const text = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));
  return (
    <dl className={styles["metadata"]}>
      {Object.entries(metadata).map(([field, value]) => (
        <div key={field}>
          <dt>{field}</dt>
          <dd>{text(value)}</dd>
        </div>
      ))}
    </dl>
  );
}

// ---------------------------------------------------------------- windows that ended

/** A window that never ends has no history, so its place takes the first that ends. */
function periodWithPast(definition: Definition, period: string): string | null {
  const shape = (label: string) => definition.windows.find((window) => labelOf(window) === label)?.period;
  const ends = (label: string) => !["all_time", "rolling"].includes(shape(label) ?? "");
  return ends(period) ? period : (definition.windows.map(labelOf).find(ends) ?? null);
}

function Past({ name, definition, member, where, turn }: { name: BoardName; definition: Definition; member: string; where: Where; turn: string }) {
  const period = periodWithPast(definition, where.period);
  const { data, problem } = useHistory(name, member, period, where.group, turn);
  if (period === null || (problem && !data)) return null;
  const windows = data ? data.windows.toReversed() : [];
  const title = `${readable(period)} ranks`;
  if (!windows.length) return data ? <p className={styles["absent"]}>No {readable(period).toLowerCase()} window with {member} in it has ended yet.</p> : null;
  const best = windows.reduce((best, window) => (window.rank < best.rank ? window : best));
  const words = `${title} of ${member} in ${windows.length} windows that ended, ${windows[0]?.slot} to ${windows.at(-1)?.slot}; the best was ${count(best.rank)} in ${best.slot}`;
  return (
    <section aria-label={title} className={styles["past"]}>
      <h3>{title}</h3>
      <LinePlot label={words} samples={windows.map((window) => ({ label: window.slot, value: window.rank }))} width={320} height={140} isUpsideDown />
      <details>
        <summary>As a table</summary>
        <Table caption={words} className={styles["around"] ?? ""}>
          <thead>
            <tr>
              <th scope="col">Window</th>
              <th scope="col" className={numberCell}>
                Rank
              </th>
              <th scope="col" className={numberCell}>
                Score
              </th>
            </tr>
          </thead>
          <tbody>
            {windows.toReversed().map((window) => (
              <tr key={window.slot}>
                <th scope="row">
                  <Link to={["boards", name.project, name.board]} query={{ period, slot: window.slot, group: where.group, member }}>
                    {window.slot}
                  </Link>
                </th>
                <td className={numberCell}>
                  {count(window.rank)} <small>of {count(window.total)}</small>
                </td>
                <td className={numberCell}>
                  <Score value={window.score} />
                </td>
              </tr>
            ))}
          </tbody>
        </Table>
      </details>
    </section>
  );
}

