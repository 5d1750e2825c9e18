import { forget, useAccess, useIsStudent } from "../lib/access";
import { Link, navigate } from "../router/router";
import { chooseTheme, type Theme, THEMES, useTheme } from "../theme/theme";
import { Button } from "../ui";
import styles from "./app.module.css";
import { Mark } from "./Mark";

const PLACES = [
  { page: "boards", label: "Boards" },
  { page: "leaderboards", label: "Campus" },
  { page: "console", label: "Console" },
  { page: "docs", label: "API" },
];
/** The pages of students; the others need a key, or are for those who run the server. */
export const OF_STUDENTS = ["leaderboards"];

export function Masthead({ page }: { page: string }) {
  const isStudent = useIsStudent();
  return (
    <header className={styles["masthead"]}>
      <Link to={[]} className={styles["brand"]}>
        <Mark />
        <span>Laurels</span>
      </Link>
      <nav aria-label="Pages" className={styles["places"]}>
        {PLACES.filter((place) => !isStudent || OF_STUDENTS.includes(place.page)).map((place) => (
          <Link key={place.page} to={[place.page]} aria-current={place.page === page ? "page" : undefined}>
            {place.label}
          </Link>
        ))}
      </nav>
      <ThemeSwitch />
    </header>
  );
}

const THEME_WORDS: Record<Theme, string> = { auto: "as your system", light: "light", dark: "dark" };
const THEME_SIGNS: Record<Theme, string> = { auto: "◐", light: "○", dark: "●" };

function ThemeSwitch() {
  const theme = useTheme();
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? "auto";
  const words = `Colours: ${THEME_WORDS[theme]}. Change to ${THEME_WORDS[next]}.`;
  return (
    <button type="button" className={styles["theme"]} title={words} aria-label={words} onClick={() => chooseTheme(next)}>
      <span aria-hidden="true">{THEME_SIGNS[theme]}</span>
    </button>
  );
}

export function Footer() {
  const key = useAccess("key");
  const token = useAccess("token");
  return (
    <footer className={styles["footer"]}>
      <span>Laurels</span>
      {token && (
        <Button look="plain" onClick={() => forget("token")}>
          Forget the player’s token
        </Button>
      )}
      {key && (
        <Button
          look="plain"
          onClick={() => {
            forget("key");
            navigate([]);
          }}
        >
          Forget the key
        </Button>
      )}
    </footer>
  );
}
