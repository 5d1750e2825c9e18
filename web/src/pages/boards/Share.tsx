/** This view as a link, and as a tag for other pages. */
import { useState } from "react";
import { urlOf } from "../../router/router";
import type { Theme } from "../../theme/theme";
import { Button, Choices, Dialog, say, TextArea } from "../../ui";
import type { BoardName } from "./asking";
import styles from "./boards.module.css";
import { type Where } from "./view";

interface ShareProps {
  isOpen: boolean;
  onClose: () => void;
  name: BoardName;
  where: Where;
}

const THEMES = [
  { id: "auto", label: "As the reader’s" },
  { id: "light", label: "Light" },
  { id: "dark", label: "Dark" },
] as const;
const ROWS = [
  { id: "5", label: "5" },
  { id: "10", label: "10" },
  { id: "25", label: "25" },
] as const;

export function Share({ isOpen, onClose, name, where }: ShareProps) {
  const [theme, setTheme] = useState<Theme>("auto");
  const [rows, setRows] = useState<"5" | "10" | "25">("10");
  const tag = embedTag(name, where, rows, theme);
  return (
    <Dialog title="Share this view" isOpen={isOpen} onClose={onClose} actions={<Button onClick={onClose}>Close</Button>}>
      <div className={styles["share"]}>
        <TextArea label="The address of this view" readOnly rows={2} value={location.href} hint="It contains no key: your readers need their own." />
        <Copy what="address" text={location.href} />
        <Choices label="Rows" choices={ROWS} chosen={rows} onChoose={setRows} />
        <Choices label="Colours" choices={THEMES} chosen={theme} onChoose={setTheme} />
        <TextArea
          label="To embed this board in another page"
          readOnly
          rows={6}
          value={tag}
          hint={
            <>
              Everyone who sees that page can read the key. Create one that may only read: <code>laurels keys create {name.project} --scope read</code>.
            </>
          }
        />
        <Copy what="tag" text={tag} />
      </div>
    </Dialog>
  );
}

function Copy({ what, text }: { what: string; text: string }) {
  const copy = () =>
    navigator.clipboard
      .writeText(text)
      .then(() => say(`Copied the ${what}.`))
      .catch(() => say("The browser does not allow copying. Select the text and copy it yourself.", { isBad: true }));
  return (
    <p className={styles["line"]}>
      <Button small onClick={copy}>
        Copy the {what}
      </Button>
    </p>
  );
}

const quoted = (text: string): string => `"${text.replaceAll("&", "&amp;").replaceAll('"', "&quot;")}"`;

/** The tag to paste. */
export function embedTag({ project, board }: BoardName, { period, group }: Where, rows: string, theme: Theme): string {
  const given = { board: `${project}/${board}`, key: "lk_…", period, group, limit: rows, theme: theme === "auto" ? "" : theme };
  const attributes = Object.entries(given).flatMap(([attribute, value]) => (value ? [`  data-${attribute}=${quoted(value)}`] : []));
  return `<script async src=${quoted(urlOf(["embed.js"]))}\n${attributes.join("\n")}></script>`;
}
