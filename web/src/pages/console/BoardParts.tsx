/** The parts of a board's form: fields under a heading, and the lists of windows and snapshots. */
import type { ReactNode } from "react";
import type { FieldError } from "../../lib/problem";
import { Button, Input, Select, Sheet } from "../../ui";
import styles from "./console.module.css";
import { type Draft, labelOf, newWindow, type SnapshotDraft, type WindowDraft, wrongAt } from "./definition";
import { Of } from "./parts";

export function Part({ title, hint, wrong, children }: { title: string; hint?: string; wrong?: string | undefined; children: ReactNode }) {
  return (
    <Sheet as="div" isPadded>
      <fieldset className={styles["part"]}>
        <legend>{title}</legend>
        {hint && <p className={styles["soft"]}>{hint}</p>}
        {wrong && <p className={styles["wrong"]}>{wrong}</p>}
        {children}
      </fieldset>
    </Sheet>
  );
}

export const Pair = ({ children }: { children: ReactNode }) => <div className={styles["pair"]}>{children}</div>;

interface TickProps {
  label: string;
  isOn: boolean;
  wrong: string | undefined;
  onChange: (isOn: boolean) => void;
  children: ReactNode;
}

export function Tick({ label, isOn, wrong, onChange, children }: TickProps) {
  return (
    <label className={styles["tick"]}>
      <input type="checkbox" name={label} checked={isOn} aria-invalid={wrong ? true : undefined} onChange={(event) => onChange(event.target.checked)} />
      <span>
        {children}
        {wrong && <span className={styles["wrong"]}> {wrong}</span>}
      </span>
    </label>
  );
}

interface PartProps {
  draft: Draft;
  errors: readonly FieldError[];
  change: (changes: Partial<Draft>) => void;
}

const PERIODS = ["hourly", "daily", "weekly", "monthly", "yearly", "all_time", "rolling", "every"].map((value) => ({ value, label: value }));

export function Windows({ draft, errors, change }: PartProps) {
  const put = (index: number, changes: Partial<WindowDraft>) =>
    change({ windows: draft.windows.map((window, at) => (at === index ? { ...window, ...changes } : window)) });
  return (
    <Part title="Windows" wrong={wrongAt(errors, "windows")} hint="The periods that the board is ranked over. Requests that name no period get the first.">
      {draft.windows.map((window, index) => {
        const at = `windows[${index}]`;
        const others = draft.windows.filter((other) => other !== window && !other.sum_of && other.period !== "rolling").map(labelOf);
        return (
          <div key={index} role="group" aria-label={`Window ${index + 1}`} className={styles["row"]}>
            <Select label="Period" options={PERIODS} value={window.period} wrong={wrongAt(errors, `${at}.period`)} onChoose={(period) => put(index, { period })} />
            {window.period === "rolling" && (
              <Input label="Days" inputMode="numeric" value={window.days} wrong={wrongAt(errors, `${at}.days`)} hint="Including today." onChange={(event) => put(index, { days: event.target.value })} />
            )}
            {window.period === "every" && (
              <Input label="Seconds" inputMode="numeric" value={window.seconds} wrong={wrongAt(errors, `${at}.seconds`)} hint="The length of each window." onChange={(event) => put(index, { seconds: event.target.value })} />
            )}
            {window.period !== "all_time" && (
              <Input
                label="Keep"
                value={window.keep}
                wrong={wrongAt(errors, `${at}.keep`)}
                hint="How many to keep, including the current one; or a duration (P30D). Empty: all."
                onChange={(event) => put(index, { keep: event.target.value })}
              />
            )}
            <Input label="Name" value={window.name} placeholder={labelOf({ ...window, name: "" })} wrong={wrongAt(errors, `${at}.name`)} hint="The name for period= in requests." onChange={(event) => put(index, { name: event.target.value })} />
            <Select
              label="Sum of"
              value={window.sum_of}
              wrong={wrongAt(errors, `${at}.sum_of`)}
              hint="Entries are sums of another window’s entries."
              options={[{ value: "", label: "nothing" }, ...others.map((value) => ({ value, label: value }))]}
              onChoose={(sum_of) => put(index, { sum_of })}
            />
            <Button
              small
              look="quiet"
              disabled={draft.windows.length === 1}
              onClick={() => change({ windows: draft.windows.filter((_, at) => at !== index) })}
            >
              <Of does="Remove" what={`window ${index + 1}, ${labelOf(window)}`} />
            </Button>
            {wrongAt(errors, at) && <p className={styles["wrong"]}>{wrongAt(errors, at)}</p>}
          </div>
        );
      })}
      <div>
        <Button small onClick={() => change({ windows: [...draft.windows, newWindow("weekly")] })}>
          Add a window
        </Button>
      </div>
    </Part>
  );
}

export function Archive({ draft, errors, change }: PartProps) {
  const put = (index: number, changes: Partial<SnapshotDraft>) =>
    change({ snapshots: draft.snapshots.map((snapshot, at) => (at === index ? { ...snapshot, ...changes } : snapshot)) });
  const labels = draft.windows.map(labelOf);
  return (
    <Part title="Archive" wrong={wrongAt(errors, "archive")} hint="What PostgreSQL keeps of the board.">
      <Tick label="journal" isOn={draft.journal} wrong={wrongAt(errors, "archive.journal")} onChange={(journal) => change({ journal })}>
        Journal: keep every accepted submission in PostgreSQL. A lost board can be rebuilt from it.
      </Tick>
      {draft.snapshots.map((snapshot, index) => {
        const at = `archive.snapshot[${index}]`;
        return (
          <div key={index} role="group" aria-label={`Snapshot ${index + 1}`} className={styles["row"]}>
            <Select
              label="Snapshot of"
              options={labels.map((value) => ({ value, label: value }))}
              value={snapshot.period}
              wrong={wrongAt(errors, `${at}.period`)}
              hint="Taken when the window ends."
              onChoose={(period) => put(index, { period })}
            />
            <Input label="Top" inputMode="numeric" value={snapshot.top} wrong={wrongAt(errors, `${at}.top`)} hint="How many entries, from the best. Empty: all." onChange={(event) => put(index, { top: event.target.value })} />
            <Tick label="every" isOn={snapshot.everyDay} wrong={wrongAt(errors, `${at}.every`)} onChange={(everyDay) => put(index, { everyDay })}>
              Every day too, at midnight; an all_time window needs it.
            </Tick>
            <Button small look="quiet" onClick={() => change({ snapshots: draft.snapshots.filter((_, at) => at !== index) })}>
              <Of does="Remove" what={`snapshot ${index + 1}`} />
            </Button>
            {wrongAt(errors, at) && <p className={styles["wrong"]}>{wrongAt(errors, at)}</p>}
          </div>
        );
      })}
      <div>
        <Button small onClick={() => change({ snapshots: [...draft.snapshots, { period: labels[0] ?? "", top: "", everyDay: false }] })}>
          Add a snapshot
        </Button>
      </div>
    </Part>
  );
}
