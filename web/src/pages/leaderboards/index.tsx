/** The leaderboards of a campus, with the place of the token's player. */
import { type FormEvent, type ReactNode, useState } from "react";
import { LeaderboardTable } from "../../components/LeaderboardTable";
import { remember, useAccess } from "../../lib/access";
import { ask, playerApi } from "../../lib/client";
import { addDays, isoDay, parseDay, type Ymd } from "../../lib/days";
import { asPeriod, asScope, type Campus, PERIODS, type Period, pageOf, rankedDays, ROWS, type Scope, SCOPES } from "../../lib/leaderboards";
import { useAsk } from "../../lib/useAsk";
import { count, counted, readable } from "../../lib/words";
import { useQuery } from "../../router/router";
import { Button, Choices, EmptyState, ErrorState, Input, Select, Sheet, Tabs, TimeLeft, Title } from "../../ui";
import styles from "./leaderboards.module.css";
import { MyCard } from "./MyCard";

const DEFAULTS = { period: "daily", scope: "overall", campus: "", day: "", from: "0" };
const FRESH = 5_000; // milliseconds between two reads of the current day

export default function Leaderboards() {
  const key = useAccess("key");
  const token = useAccess("token");
  return key || token ? <Campuses token={token} /> : <SignIn />;
}

function Campuses({ token }: { token: string }) {
  const campuses = useAsk("campuses", (signal) => ask(playerApi.GET("/leaderboards/campuses", { signal })));
  const summary = useAsk(
    token ? `summary ${token}` : null,
    (signal) => ask(playerApi.GET("/leaderboards/me/summary", { signal })),
    { every: FRESH },
  );
  const [{ campus: asked }] = useQuery(DEFAULTS);
  const known = campuses.data?.campuses;
  // By default the player's own, once that is known.
  const isSettled = asked || !token || summary.data || summary.problem;
  const campus = known?.find((each) => each.id === (asked || summary.data?.campus_id)) ?? (isSettled && !asked ? known?.[0] : undefined);

  if (campuses.problem) return <ErrorState problem={campuses.problem} again={campuses.again} />;
  if (known && !known.length) return <NoCampus />;
  if (known && asked && !campus) return <UnknownCampus campuses={known} />;
  return (
    <>
      <Title>{campus ? `${campus.name} leaderboards` : "Leaderboards"}</Title>
      <Board
        campuses={known ?? []}
        campus={campus}
        me={summary.data?.user_id ?? ""}
        card={<MyCard token={token} summary={summary} />}
        onDayEnd={campuses.again}
      />
    </>
  );
}

interface BoardProps {
  campuses: readonly Campus[];
  campus: Campus | undefined;
  me: string;
  card: ReactNode;
  /** The campus has a new date. */
  onDayEnd: () => void;
}

function Board({ campuses, campus, me, card, onDayEnd }: BoardProps) {
  const [view, change] = useQuery(DEFAULTS);
  const period = asPeriod(view.period);
  const scope = asScope(view.scope);
  const asked = parseDay(view.day);
  const offset = pageOf(Math.max(Number(view.from) || 0, 0));
  const isToday = asked === null || asked === campus?.ymd;
  const question = campus && { scope, period, campus_id: campus.id, ...(asked && { ymd: asked }), offset, limit: ROWS, ...(me && { user_id: me }) };
  const table = useAsk(
    question ? JSON.stringify(question) : null,
    (signal) => {
      const { scope, ...query } = question as NonNullable<typeof question>;
      return ask(playerApi.GET("/leaderboards/{scope}", { params: { path: { scope }, query: { ...query, deltas: true } }, signal }));
    },
    { keep: true, ...(isToday && { every: FRESH }) },
  );
  const today = campus?.ymd;
  const day: Ymd | undefined = asked ?? table.data?.ymd ?? today;
  const mine = table.data?.user ?? null;
  const pick = (changes: Partial<Record<keyof typeof DEFAULTS, string>>) => change({ from: "", ...changes });

  return (
    <>
      <header className={styles["heading"]}>
        <div>
          <p className={styles["where"]}>Leaderboards</p>
          <h1>{campus?.name ?? "…"}</h1>
          <p className={styles["facts"]} aria-live="polite">
            {day && rankedDays(period, day)}
            {table.data && !table.isStale && ` · ${counted(table.data.total, "person", "people")}`}
          </p>
        </div>
        {isToday && table.data && (
          <p className={styles["reset"]}>
            <span>The day ends in</span>
            <TimeLeft
              until={table.data.next_reset_at}
              onEnd={() => {
                table.again();
                onDayEnd();
              }}
            />
          </p>
        )}
      </header>
      <Tabs<Period>
        label="Period"
        tabs={PERIODS.map((id) => ({ id, label: readable(id) }))}
        chosen={period}
        onChoose={(id) => pick({ period: id })}
      >
        <div className={styles["tools"]}>
          <Choices<Scope> label="Scope" choices={SCOPES.map((id) => ({ id, label: readable(id) }))} chosen={scope} onChoose={(id) => pick({ scope: id })} />
          <Select
            label="Campus"
            value={campus?.id ?? ""}
            options={campuses.map((each) => ({ value: each.id, label: each.name }))}
            disabled={!campuses.length}
            onChoose={(id) => pick({ campus: id, day: "" })}
          />
          <DayPicker day={day} today={today} onPick={(ymd) => pick({ day: ymd === today ? "" : isoDay(ymd) })} />
        </div>
        <div className={styles["columns"]}>
          <Sheet aria-label="Ranking" className={styles["ranking"] ?? ""}>
            {table.problem && !table.data ? (
              <ErrorState problem={table.problem} again={table.again} />
            ) : table.data && !table.data.items.length ? (
              <EmptyState title={offset ? "Past the end" : "No entries yet"}>
                {offset ? "The ranking ends before this rank." : isToday ? "The first activity takes the lead." : "There was no activity on this day."}
              </EmptyState>
            ) : (
              <LeaderboardTable
                caption={`${readable(scope)}, ${period}: rank, name and score`}
                rows={table.data?.items}
                mine={mine}
                isStale={table.isStale}
              />
            )}
            {table.data && <Pager offset={offset} total={table.data.total} shown={table.data.items.length} onGo={(from) => change({ from: String(from) })} />}
          </Sheet>
          {card}
        </div>
      </Tabs>
    </>
  );
}

function DayPicker({ day, today, onPick }: { day: Ymd | undefined; today: Ymd | undefined; onPick: (ymd: Ymd) => void }) {
  const value = day ? isoDay(day) : "";
  return (
    <div className={styles["days"]}>
      <Button aria-label="The day before" disabled={!day} onClick={() => day && onPick(addDays(day, -1))}>
        <span aria-hidden="true">‹</span>
      </Button>
      <Input
        label="Day"
        type="date"
        key={value}
        defaultValue={value}
        max={today ? isoDay(today) : undefined}
        onChange={(event) => {
          const ymd = parseDay(event.target.value);
          if (ymd && today && ymd <= today) onPick(ymd);
        }}
      />
      <Button aria-label="The day after" disabled={!day || !today || day >= today} onClick={() => day && onPick(addDays(day, 1))}>
        <span aria-hidden="true">›</span>
      </Button>
    </div>
  );
}

function Pager({ offset, total, shown, onGo }: { offset: number; total: number; shown: number; onGo: (offset: number) => void }) {
  if (total <= ROWS && !offset) return null;
  return (
    <nav aria-label="Rows" className={styles["pager"]}>
      <Button small disabled={!offset} onClick={() => onGo(0)}>
        Top
      </Button>
      <Button small disabled={!offset} onClick={() => onGo(offset - ROWS)}>
        Previous
      </Button>
      <span className="numbers">{shown ? `${count(offset + 1)}–${count(offset + shown)} of ${count(total)}` : `0 of ${count(total)}`}</span>
      <Button small disabled={offset + shown >= total} onClick={() => onGo(offset + ROWS)}>
        Next
      </Button>
    </nav>
  );
}

const NoCampus = () => (
  <>
    <Title>Leaderboards</Title>
    <h1 className="unseen">Leaderboards</h1>
    <EmptyState title="No campus yet">
      <code>laurels demo campus</code> makes examples.
    </EmptyState>
  </>
);

function UnknownCampus({ campuses }: { campuses: readonly Campus[] }) {
  const [, change] = useQuery(DEFAULTS);
  const first = campuses[0];
  return (
    <>
      <Title>Leaderboards</Title>
      <h1 className="unseen">Leaderboards</h1>
      <EmptyState title="No such campus" action={first && <Button onClick={() => change({ campus: "" })}>Show another</Button>}>
        Laurels does not know the campus in this address.
      </EmptyState>
    </>
  );
}

function SignIn() {
  const [typed, setTyped] = useState("");
  const open = (event: FormEvent) => {
    event.preventDefault();
    const secret = typed.trim();
    remember(secret.startsWith("eyJ") ? "token" : "key", secret);
  };
  return (
    <Sheet as="div" isPadded className={styles["gate"] ?? ""}>
      <Title>Leaderboards</Title>
      <h1>Enter a token or a key</h1>
      <p>
        A player’s token shows the leaderboards with your own place. Your app passes it in the address, as <code>#token=…</code>. An API
        key of the project <code>campus</code> shows them too.
      </p>
      <form onSubmit={open}>
        <Input
          label="Token or key"
          type="password"
          required
          value={typed}
          hint="Kept in this tab until you close it."
          onChange={(event) => setTyped(event.target.value)}
        />
        <Button type="submit" look="primary">
          Open
        </Button>
      </form>
    </Sheet>
  );
}
