/** The card beside the table: the player, the streak, the badges. */
import { StreakBadge } from "../../components/StreakBadge";
import { ask, playerApi } from "../../lib/client";
import { addDays, dayInWords } from "../../lib/days";
import { badgeWords, points1, SCOPES, type Summary, tally } from "../../lib/leaderboards";
import { type Asked, useAsk } from "../../lib/useAsk";
import { count, readable } from "../../lib/words";
import { Avatar, Badge, ErrorState, Sheet, Skeleton } from "../../ui";
import styles from "./leaderboards.module.css";

const CALENDAR_DAYS = 12 * 7;

export function MyCard({ token, summary }: { token: string; summary: Asked<Summary> }) {
  return (
    <Sheet as="aside" isPadded aria-label="Me" className={styles["card"] ?? ""}>
      {!token ? (
        <NoPlayer />
      ) : summary.data ? (
        <Me summary={summary.data} />
      ) : summary.problem ? (
        <ErrorState problem={summary.problem} again={summary.again} />
      ) : (
        <div role="status" aria-label="Loading" className={styles["bones"]}>
          <Skeleton width="60%" />
          <Skeleton />
          <Skeleton width="80%" />
        </div>
      )}
    </Sheet>
  );
}

const NoPlayer = () => (
  <>
    <h2>Me</h2>
    <p className={styles["soft"]}>
      A key belongs to no player. With a player’s token in the address, <code>#token=…</code>, this card shows your place, streak and badges.
    </p>
  </>
);

function Me({ summary }: { summary: Summary }) {
  const today = summary.ymd;
  const days = useAsk(`days ${summary.user_id} ${today}`, (signal) =>
    ask(playerApi.GET("/leaderboards/me/days", { params: { query: { from: addDays(today, 1 - CALENDAR_DAYS), to: today } }, signal })),
  );
  // Today is not finalized yet; until then, a score means an active day.
  const isActiveToday = Object.values(summary.scores).some((score) => score !== null);
  const active = new Set([...(days.data?.days.map((day) => day.ymd) ?? []), ...(isActiveToday ? [today] : [])]);
  const name = summary.handle || summary.user_id.slice(0, 8);
  return (
    <>
      <div className={styles["me"]}>
        <Avatar name={name} url={summary.avatar_url} />
        <div>
          <h2>{name}</h2>
          <p className={styles["soft"]}>{summary.campus.name}</p>
        </div>
      </div>
      <StreakBadge streak={summary.streak} today={today} active={active} />
      <section aria-labelledby="standing">
        <h3 id="standing">Today</h3>
        <dl className={styles["places"]}>
          {SCOPES.map((scope) => {
            const [rank, score] = [summary.ranks[scope], summary.scores[scope]];
            return (
              <div key={scope}>
                <dt>{readable(scope)}</dt>
                <dd className="numbers">
                  {typeof rank === "number" && typeof score === "number" ? (
                    <>
                      <strong>{count(rank)}</strong> {points1(score)}
                    </>
                  ) : (
                    "not ranked yet"
                  )}
                </dd>
              </div>
            );
          })}
        </dl>
      </section>
      <Badges badges={summary.badges} />
    </>
  );
}

function Badges({ badges }: { badges: Summary["badges"] }) {
  return (
    <section aria-labelledby="badges">
      <h3 id="badges">Badges</h3>
      {badges.length ? (
        <ul role="list" className={styles["badges"]}>
          {tally(badges).map(({ kind, times, last }) => {
            const words = badgeWords(kind);
            return (
              <li key={kind}>
                <Badge tone="gold">{words.title}</Badge>
                <p className={styles["soft"]}>
                  {words.about}
                  {words.about && ". "}
                  {times > 1 ? `${count(times)} times, last on ${dayInWords(last)}` : dayInWords(last)}
                </p>
              </li>
            );
          })}
        </ul>
      ) : (
        <p className={styles["soft"]}>None yet. The ten best of a day earn one.</p>
      )}
    </section>
  );
}
