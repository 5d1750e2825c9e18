/** The current streak, the best one, and a calendar of the last weeks. */
import { dayInWords, weeksUpTo, type Ymd } from "../lib/days";
import { isAlive, type Streak } from "../lib/leaderboards";
import { count, counted } from "../lib/words";
import styles from "./components.module.css";

const WEEKS = 12;

interface StreakBadgeProps {
  streak: Streak;
  today: Ymd;
  /** Active days of the last weeks. */
  active: ReadonlySet<Ymd>;
}

export function StreakBadge({ streak, today, active }: StreakBadgeProps) {
  const weeks = weeksUpTo(today, WEEKS, active);
  const days = weeks.flat();
  const lives = isAlive(streak.last_active_ymd, today);
  return (
    <section aria-label="Streak" className={styles["streak"]}>
      <dl className={styles["figures"]}>
        <div>
          <dt>Current streak</dt>
          <dd data-lives={lives && streak.current > 0}>
            <strong>{count(streak.current)}</strong> {streak.current === 1 ? "day" : "days"}
          </dd>
        </div>
        <div>
          <dt>Best</dt>
          <dd>
            <strong>{count(streak.best)}</strong> {streak.best === 1 ? "day" : "days"}
          </dd>
        </div>
      </dl>
      {streak.current > 0 && !lives && <p className={styles["aside"]}>Last active on {dayInWords(streak.last_active_ymd)}. The next active day starts a new streak.</p>}
      <div
        role="img"
        aria-label={`Active on ${counted(days.filter((day) => day.isActive).length, "day")} of the last ${WEEKS} weeks`}
        className={styles["calendar"]}
      >
        {weeks.map((week) => (
          <div key={week[0]?.ymd} className={styles["week"]}>
            {week.map((day) => (
              <i
                key={day.ymd}
                data-active={day.isActive || undefined}
                data-today={day.ymd === today || undefined}
                title={`${dayInWords(day.ymd)}${day.isActive ? ": active" : ""}`}
              />
            ))}
          </div>
        ))}
      </div>
    </section>
  );
}
