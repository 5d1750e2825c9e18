/** The choice of period, window and group. */
import { useEffect, useId, useMemo, useState } from "react";
import type { Schemas } from "../../lib/client";
import { moment, readable } from "../../lib/words";
import { Choices, Field, Select } from "../../ui";
import { type BoardName, type Definition, useSnapshots } from "./asking";
import styles from "./boards.module.css";
import { cutText, knownValues, labelOf, parseCut, slotChoices, typedCut, valueWords, type View } from "./view";

const PICTURE = "@"; // prefix of a choice that is a snapshot, not a slot

interface ChoosingProps {
  name: BoardName;
  definition: Definition;
  period: string;
  view: View;
  /** The readable windows, newest first; undefined until they are known. */
  windows: readonly Schemas["WindowInfo"][] | undefined;
  onChoose: (name: "period" | "slot" | "group" | "snapshot", value: string) => void;
}

export function Choosing({ name, definition, period, view, windows, onChoose }: ChoosingProps) {
  const labels = definition.windows.map(labelOf);
  const periods = labels.includes(period) ? labels : [...labels, period];
  const isArchived = definition.archive.snapshot.length > 0;
  const archived = useSnapshots(name, period, view.group, isArchived);
  const ofGroups = useSnapshots(name, period, undefined, isArchived && definition.groups.length > 0);
  const tables = archived.data ?? [];
  const slots = slotChoices(windows?.length ? windows : [{ slot: "" }], tables.filter((table) => !isPicture(table)));
  const pictures = tables.filter(isPicture).map((table) => ({ value: PICTURE + table.id, label: `As of ${moment(table.taken_for)}` }));
  const options = [...slots, ...pictures];
  const value = view.snapshot ? PICTURE + view.snapshot : view.slot === windows?.[0]?.slot ? "" : view.slot;
  const choose = (value: string) => (value.startsWith(PICTURE) ? onChoose("snapshot", value.slice(PICTURE.length)) : onChoose("slot", value));
  return (
    <div className={styles["tools"]}>
      <Choices label="Period" choices={periods.map((label) => ({ id: label, label: readable(label) }))} chosen={period} onChoose={(label) => onChoose("period", label)} />
      <Select label="Window" options={options} value={value} onChoose={choose} disabled={options.length < 2 && !value} />
      {definition.groups.length > 0 && (
        <Within
          definition={definition}
          group={view.group}
          archived={ofGroups.data?.map((table) => table.group) ?? []}
          onChoose={(group) => onChoose("group", group)}
        />
      )}
    </div>
  );
}

/** Whether a snapshot was taken while its window was running. */
const isPicture = ({ ends_at, taken_for }: { ends_at: string | null; taken_for: string }): boolean =>
  ends_at === null || Date.parse(taken_for) < Date.parse(ends_at);

interface WithinProps {
  definition: Definition;
  group: string;
  archived: readonly string[];
  onChoose: (group: string) => void;
}

/** Everyone, or a group: choose its dimensions; type their values, or choose known ones. */
function Within({ definition, group, archived, onChoose }: WithinProps) {
  const [dimensions, setDimensions] = useState<readonly string[]>([]);
  const [values, setValues] = useState<ReadonlyMap<string, string>>(new Map());
  const [hasChosen, setChosen] = useState(false);
  useEffect(() => {
    const cut = parseCut(group);
    setDimensions(cut.map(([name]) => name));
    setValues(new Map(cut));
  }, [group]);
  const everyone = { value: "", label: "Everyone" };
  const cuts = definition.groups.map((names) => ({ value: names.join(","), label: names.map(readable).join(", ") }));
  const chooseCut = (names: string) => {
    if (!names) {
      onChoose("");
      setDimensions([]);
      return;
    }
    setDimensions(names.split(","));
    setChosen(true);
  };
  const give = (dimension: string, value: string) => {
    const typed = typedCut(value, definition.groups);
    if (typed) {
      onChoose(cutText(typed));
      return;
    }
    const after = new Map(values).set(dimension, value.trim());
    setValues(after);
    const wanted = dimensions.map((name) => [name, after.get(name) ?? ""] as const);
    if (wanted.every(([, value]) => value)) onChoose(cutText(wanted));
  };
  return (
    <>
      <Select label="Within" options={[everyone, ...cuts]} value={dimensions.join(",")} onChoose={chooseCut} />
      {dimensions.map((dimension, index) => (
        <Value
          key={dimension}
          dimension={dimension}
          value={values.get(dimension) ?? ""}
          known={knownValues(dimension, dimension === definition.timezone_by ? Object.keys(definition.timezones ?? {}) : [], archived)}
          isFirst={hasChosen && index === 0}
          onGive={(value) => give(dimension, value)}
        />
      ))}
    </>
  );
}

interface ValueProps {
  dimension: string;
  value: string;
  known: readonly string[];
  isFirst: boolean;
  onGive: (value: string) => void;
}

function Value({ dimension, value, known, isFirst, onGive }: ValueProps) {
  const [typed, setTyped] = useState(value);
  const list = useId();
  const options = useMemo(
    () =>
      known.map((each) => (
        <option key={each} value={each}>
          {valueWords(dimension, each)}
        </option>
      )),
    [dimension, known.join()],
  );
  useEffect(() => setTyped(value), [value]);
  const give = (typed: string) => typed.trim() && typed !== value && onGive(typed);
  const take = (typed: string) => {
    setTyped(typed);
    if (known.includes(typed)) give(typed); // chosen from the list, or typed in full
  };
  return (
    <Field label={readable(dimension)}>
      {(tied) => (
        <>
          <input
            {...tied}
            list={list}
            value={typed}
            autoComplete="off"
            spellCheck={false}
            autoFocus={isFirst}
            placeholder={dimension === "country" ? "BR" : ""}
            onChange={(event) => take(event.target.value)}
            onBlur={() => give(typed)}
            onKeyDown={(event) => event.key === "Enter" && give(typed)}
          />
          <datalist id={list}>{options}</datalist>
        </>
      )}
    </Field>
  );
}
