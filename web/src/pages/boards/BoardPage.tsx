/** One board: a window of it, ranked and live; a member, friends, and the distribution of scores. */
import { type FormEvent, useCallback, useEffect, useMemo, useRef, useState } from "react";
import type { Schemas } from "../../lib/client";
import { count } from "../../lib/words";
import { Link, navigate, useQuery } from "../../router/router";
import { Badge, Button, EmptyState, ErrorState, Input, Select, Sheet, Skeleton, SkeletonRows, Table, Tabs, TimeLeft, Title } from "../../ui";
import { type BoardName, useBoard, useBoards, useProjects, useRanking, useStanding, useWindows } from "./asking";
import styles from "./boards.module.css";
import { Choosing } from "./Choosing";
import { entriesWords } from "./Directory";
import { Friends } from "./Friends";
import { MemberPanel } from "./MemberPanel";
import { hasEnded, type Ranking, type State } from "./ranking";
import { RankingTable, type Target } from "./RankingTable";
import { keep, useRemembered } from "./remembered";
import { Share } from "./Share";
import { SnapshotTable } from "./SnapshotTable";
import { Spread } from "./Spread";
import { chosen, cutWords, DEFAULTS, friendsText, labelOf, parseFriends, type View, windowWords } from "./view";

const TABS = [
  { id: "ranking", label: "Ranking" },
  { id: "friends", label: "Friends" },
] as const;
const LONGEST_FRIENDS = 6_000; // most characters of friends in an address

export function BoardPage(name: BoardName) {
  const { data, problem, again } = useBoard(name);
  return (
    <>
      <Title>{`${name.board} · ${name.project}`}</Title>
      {data ? (
        <Board {...name} definition={data.definition} />
      ) : (
        <>
          <p className={styles["crumbs"]}>
            <Link to={["boards"]}>All boards</Link>
          </p>
          <h1>{name.board}</h1>
          {problem ? <ErrorState problem={problem} again={again} /> : <Loading />}
        </>
      )}
    </>
  );
}

export type ChangeView = (changes: Partial<View>, options?: { replace?: boolean }) => void;

/** The address's view, and a function that changes it; the function is stable, so rows are not drawn again. */
function useView(): [View, ChangeView] {
  const [view, change] = useQuery(DEFAULTS);
  const latest = useRef(change);
  latest.current = change;
  return [view, useCallback((changes, options) => latest.current(changes, options), [])];
}

function Board({ project, board, definition }: BoardName & { definition: Schemas["BoardDefinition"] }) {
  const name = useMemo(() => ({ project, board }), [project, board]);
  const [view, change] = useView();
  const first = definition.windows[0];
  const period = view.period || (first ? labelOf(first) : "");
  const where = useMemo(() => ({ period, slot: view.slot, group: view.group }), [period, view.slot, view.group]);
  const ranking = useRanking(name, where, definition.order);
  const standing = useStanding(name, view.member, where, ranking.beat);
  const windows = useWindows(name, where, view.slot ? "" : (ranking.head?.slot ?? ""));
  const isKept = !view.snapshot && windows.data !== undefined && (!view.slot || windows.data.some((window) => window.slot === view.slot));
  const [isSharing, setSharing] = useState(false);
  const friends = useFriends(project, view, change);
  return (
    <>
      <Heading name={name} ranking={ranking} period={period} group={view.group} onShare={() => setSharing(true)} />
      <Choosing name={name} definition={definition} period={period} view={view} windows={windows.data} onChoose={(which, value) => change(chosen(which, value))} />
      {ranking.problem && ranking.head && (
        <p className={styles["notice"]} role="status">
          {ranking.problem.message}
        </p>
      )}
      <div className={styles["columns"]}>
        <section aria-label="Entries" className={styles["main"]}>
          <Tabs label="What to show" tabs={TABS} chosen={view.show === "friends" ? "friends" : "ranking"} onChoose={(show) => change({ show })}>
            {view.show === "friends" ? (
              <Friends name={name} where={where} friends={friends.members} beat={ranking.beat} chosen={view.member} onChange={friends.change} onChoose={(member) => change({ member, rank: "", show: "" })} />
            ) : view.snapshot ? (
              <SnapshotTable key={view.snapshot} name={name} snapshot={view.snapshot} chosen={view.member} onChoose={(member) => change({ member })} />
            ) : (
              <Entries name={name} ranking={ranking} standing={standing.data} isLooking={standing.isLoading} view={view} period={period} change={change} />
            )}
          </Tabs>
        </section>
        <aside className={styles["aside"]} aria-label="A member, and the scores">
          <MemberPanel name={name} definition={definition} where={where} view={view} ranking={ranking} standing={standing} friends={friends.members} onFriends={friends.change} change={change} />
          {/* Archived windows have none. */}
          {isKept && (
            <Spread name={name} where={where} isLive={ranking.state !== "still"} standing={standing.data?.member === view.member ? standing.data : undefined} />
          )}
        </aside>
      </div>
      <Share isOpen={isSharing} onClose={() => setSharing(false)} name={name} where={where} />
    </>
  );
}

// ---------------------------------------------------------------- the heading

interface HeadingProps {
  name: BoardName;
  ranking: Ranking;
  period: string;
  group: string;
  onShare: () => void;
}

function Heading({ name, ranking, period, group, onShare }: HeadingProps) {
  const projects = useProjects();
  const boards = useBoards(name.project);
  const head = ranking.head;
  const facts = head ? [entriesWords(ranking.total), windowWords(period, head.slot), cutWords(group)].filter(Boolean).join(" · ") : "…";
  const options = (names: readonly string[] | undefined) => (names ?? []).map((each) => ({ value: each, label: each }));
  return (
    <header className={styles["heading"]}>
      <div>
        <p className={styles["crumbs"]}>
          <Link to={["boards"]}>All boards</Link> <span aria-hidden="true">/</span> <Link to={["boards", name.project]}>{name.project}</Link>
        </p>
        <h1>{name.board}</h1>
        <p className={styles["facts"]}>{facts}</p>
      </div>
      <div className={styles["clock"]}>
        {head?.next_reset_at && !hasEnded(head) && (
          <p>
            <span>Resets in </span>
            <TimeLeft until={head.next_reset_at} onEnd={ranking.again} />
          </p>
        )}
        <StateBadge state={ranking.state} hasFailed={ranking.problem !== null} />
      </div>
      <div className={styles["switch"]}>
        <Select label="Project" options={options(projects.data)} value={name.project} onChoose={(project) => navigate(["boards", project])} />
        <Select
          label="Board"
          options={options(boards.data?.map((each) => each.board))}
          value={name.board}
          onChoose={(board) => navigate(["boards", name.project, board])}
        />
        <Button onClick={onShare}>Share…</Button>
      </div>
    </header>
  );
}

const STATES: Record<State, string> = { loading: "Loading…", live: "Live", polling: "Every 3 seconds", still: "This window has ended" };

function StateBadge({ state, hasFailed }: { state: State; hasFailed: boolean }) {
  const words = state === "still" && hasFailed ? "Not live" : STATES[state];
  return (
    <span className={styles["state"]} data-state={state}>
      <Badge tone={state === "live" ? "leaf" : undefined}>{words}</Badge>
    </span>
  );
}

// ---------------------------------------------------------------- the entries

interface EntriesProps {
  name: BoardName;
  ranking: Ranking;
  standing: Schemas["Standing"] | undefined;
  isLooking: boolean;
  view: View;
  period: string;
  change: ChangeView;
}

function Entries({ name, ranking, standing, isLooking, view, period, change }: EntriesProps) {
  const me = useRemembered("me", name.project);
  const hasMember = view.member !== "";
  const top = useCallback((index: number) => change({ rank: index === 0 && !hasMember ? "" : String(index + 1) }, { replace: true }), [change, hasMember]);
  const rank = useRef(view.rank);
  rank.current = view.rank;
  const choose = useCallback((member: string) => change({ member, rank: rank.current || "1" }), [change]);
  const target = targetOf(view, standing, isLooking);
  const { head, problem } = ranking;
  useEffect(() => {
    if (!ranking.head && target) ranking.look(target.index, target.index);
  }, [ranking, target?.index]);
  if (!head) {
    return <Sheet as="div">{problem ? <ErrorState problem={problem} again={ranking.again} /> : <LoadingTable />}</Sheet>;
  }
  if (!ranking.total) {
    return (
      <Sheet as="div">
        <EmptyState title="No entries yet">{hasEnded(head) ? "The window ended without a score." : "The first score takes the lead."}</EmptyState>
      </Sheet>
    );
  }
  const caption = `${name.board}, ${[windowWords(period, head.slot), cutWords(view.group)].filter(Boolean).join(", ")}: rank, member and score`;
  return (
    <Sheet as="div">
      <RankingTable ranking={ranking} caption={caption} target={target} chosen={view.member} me={me} onChoose={choose} onTop={top}>
        {(go) => (
          <GoToRank
            most={ranking.count}
            onGo={(rank) => {
              go(rank - 1);
              change({ rank: rank === 1 && !view.member ? "" : String(rank) });
            }}
          />
        )}
      </RankingTable>
      {ranking.count < ranking.total && (
        <p className={styles["foot"]}>
          The archive keeps the best {count(ranking.count)} of {count(ranking.total)}.
        </p>
      )}
    </Sheet>
  );
}

/** Where the address leads: to a rank, else to the member. */
function targetOf(view: View, standing: Schemas["Standing"] | undefined, isLooking: boolean): Target | null {
  const rank = Number.parseInt(view.rank, 10);
  if (rank >= 1) return { index: rank - 1, align: "start" };
  if (view.member && standing?.member === view.member) return { index: standing.ordinal - 1, align: "center" };
  return view.member && isLooking ? null : { index: 0, align: "start" };
}

function GoToRank({ most, onGo }: { most: number; onGo: (rank: number) => void }) {
  const [typed, setTyped] = useState("");
  const go = (event: FormEvent) => {
    event.preventDefault();
    const rank = Number.parseInt(typed.replace(/\D/g, ""), 10);
    if (rank >= 1) onGo(Math.min(rank, most));
  };
  return (
    <form className={styles["line"]} onSubmit={go}>
      <Input label="Go to rank" isBare placeholder="Rank" inputMode="numeric" size={9} value={typed} onChange={(event) => setTyped(event.target.value)} />
      <Button type="submit">Go</Button>
      <Button look="quiet" onClick={() => onGo(1)}>
        Top
      </Button>
      <Button look="quiet" onClick={() => onGo(most)}>
        Bottom
      </Button>
    </form>
  );
}

const LoadingTable = () => (
  <div role="status" aria-label="Loading">
    <Table caption="Loading">
      <tbody>
        <SkeletonRows rows={12} columns={3} />
      </tbody>
    </Table>
  </div>
);

const Loading = () => (
  <div className={styles["loading"]} role="status" aria-label="Loading">
    <Skeleton width="45%" />
    <Skeleton />
    <Skeleton width="70%" />
  </div>
);

// ---------------------------------------------------------------- friends

/** Friends from the address, else those that this browser remembers. */
function useFriends(project: string, view: View, change: ChangeView) {
  const known = useRemembered("friends", project);
  const text = view.friends || known;
  const isSilent = view.show === "friends" && !view.friends && known !== "" && known.length <= LONGEST_FRIENDS;
  useEffect(() => {
    if (isSilent) change({ friends: known }, { replace: true });
  });
  const members = useMemo(() => parseFriends(text), [text]);
  const set = (members: readonly string[]) => {
    const told = friendsText(members);
    keep("friends", project, told);
    if (view.show === "friends" || view.friends) change({ friends: told.length <= LONGEST_FRIENDS ? told : "" });
  };
  return { members, change: set };
}

