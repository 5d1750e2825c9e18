/** The form that defines or changes a board, with a hint at each field and a preview beside it. */
import { type FormEvent, useEffect, useRef, useState } from "react";
import { ask, type Schemas } from "../../lib/client";
import { asProblem, type Drop, type Problem } from "../../lib/problem";
import { useAsk } from "../../lib/useAsk";
import { Link, navigate, useAddress } from "../../router/router";
import { Button, buttonClass, Input, say, Select, TextArea } from "../../ui";
import { Archive, Pair, Part, Tick, Windows } from "./BoardParts";
import styles from "./console.module.css";
import { definitionOf, type Draft, draftOf, wrongAt, wrongWithin } from "./definition";
import type { ViewProps } from "./index";
import { Drops } from "./Drops";
import { Confirm, Heading, Told, useProjects } from "./parts";
import { type At, PreviewSheet, usePreview } from "./Preview";
import { consoleApi, isOperator, type Session } from "./session";

const PATTERN = "[A-Za-z0-9._\\-]{1,64}";

export function NewBoard({ session }: ViewProps) {
  const { query } = useAddress();
  const project = isOperator(session) ? (query.get("project") ?? "") : session.project;
  return (
    <>
      <Heading title="New board" about="What is ranked, and how. Every field has a default." />
      <BoardForm session={session} at={{ project, board: "" }} begin={draftOf({ windows: [{ period: "daily", keep: 30 }, { period: "all_time" }] })} isNew />
    </>
  );
}

export function EditBoard({ session, path: [project = "", board = ""] }: ViewProps) {
  const at = { project, board };
  const stored = useAsk(`board ${project}/${board}`, async (signal) =>
    ask<Schemas["Board"]>(consoleApi.GET("/v1/projects/{project}/boards/{board}", { params: { path: at }, signal })),
  );
  return (
    <>
      <Heading title={`Edit ${board}`} about={project} />
      <Told asked={stored}>{({ definition }) => <BoardForm session={session} at={at} begin={draftOf(definition)} />}</Told>
    </>
  );
}

interface FormProps {
  session: Session;
  at: At;
  begin: Draft;
  isNew?: boolean;
}

function BoardForm({ session, at: given, begin, isNew = false }: FormProps) {
  const [at, setAt] = useState(given);
  const [draft, setDraft] = useState(begin);
  const [refused, setRefused] = useState<Problem>();
  const [dropping, setDropping] = useState<readonly Drop[]>([]);
  const [isSaving, setSaving] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const projects = useProjects(session).data ?? [];
  const [zones, setZones] = useState<readonly string[]>([]); // hundreds, so loaded when the field is first used
  useEffect(() => {
    if (refused) focusWrong(form.current);
  }, [refused]);

  const made = definitionOf(draft);
  const preview = usePreview(at, JSON.stringify(made.definition), made.errors.length === 0);
  const errors = [...made.errors, ...(refused?.errors ?? preview.problem?.errors ?? [])];
  const change = (changes: Partial<Draft>) => {
    setRefused(undefined);
    setDraft((draft) => ({ ...draft, ...changes }));
  };
  const text = (field: keyof Draft) => ({
    value: String(draft[field]),
    onChange: (event: { target: { value: string } }) => change({ [field]: event.target.value }),
  });

  const save = async (event: FormEvent) => {
    event.preventDefault();
    if (made.errors.length) {
      focusWrong(form.current);
      return;
    }
    setSaving(true);
    setRefused(undefined);
    try {
      await define([]);
    } catch (error) {
      const problem = asProblem(error);
      if (problem.drops.length) setDropping(problem.drops);
      else setRefused(problem);
      setSaving(false);
    }
  };

  const define = async (allowed: readonly Drop[]) => {
    const query = allowed.length ? { allow_drop: allowed.map(({ window }) => window).join(",") } : {};
    const params = { path: at, query };
    const body = made.definition as Schemas["BoardDefinition"];
    await ask(consoleApi.PUT("/v1/projects/{project}/boards/{board}", { params, body }));
    say(isNew ? `${at.project}/${at.board} is defined` : `${at.project}/${at.board} is changed`);
    navigate(["console", "boards", at.project, at.board]);
  };

  return (
    <>
      {dropping.length > 0 && (
        <Confirm title={`Drop entries of ${at.project}/${at.board}?`} does="Save and drop them" typed={at.board} onClose={() => setDropping([])} act={() => define(dropping)}>
          <p>The new definition does not cover these entries. This cannot be undone.</p>
          <Drops drops={dropping} />
        </Confirm>
      )}
      <form ref={form} onSubmit={(event) => void save(event)} className={styles["columns"]}>
        <div className={styles["fields"]}>
          {refused && <Refusal problem={refused} />}
          {isNew && (
            <Part title="Name">
              <Pair>
                {isOperator(session) ? (
                  <Input
                    label="Project"
                    required
                    pattern={PATTERN}
                    list="console-projects"
                    value={at.project}
                    hint="A tenant: 1 to 64 of A-Z a-z 0-9 - _ . A new name creates a new project."
                    onChange={(event) => setAt({ ...at, project: event.target.value })}
                  />
                ) : (
                  <Input label="Project" value={at.project} readOnly hint="The project of your key." />
                )}
                <Input
                  label="Board"
                  required
                  pattern={PATTERN}
                  value={at.board}
                  hint="A ranking of the project: 1 to 64 of A-Z a-z 0-9 - _ ."
                  onChange={(event) => setAt({ ...at, board: event.target.value })}
                />
              </Pair>
              <datalist id="console-projects">
                {projects.map((project) => (
                  <option key={project} value={project} />
                ))}
              </datalist>
            </Part>
          )}

          <Part title="Scores">
            <Pair>
              <Select
                label="Aggregate"
                value={draft.aggregate}
                wrong={wrongAt(errors, "aggregate")}
                hint="What a new score does to the entry in its window."
                options={[
                  { value: "best", label: "best: keep the better score" },
                  { value: "last", label: "last: keep the newest score" },
                  { value: "first", label: "first: keep the oldest score" },
                  { value: "sum", label: "sum: add the scores" },
                ]}
                onChoose={(aggregate) => change({ aggregate })}
              />
              <Select
                label="Order"
                value={draft.order}
                wrong={wrongAt(errors, "order")}
                hint="Which score is best."
                options={[
                  { value: "desc", label: "desc: the highest" },
                  { value: "asc", label: "asc: the lowest" },
                ]}
                onChoose={(order) => change({ order })}
              />
              <Select
                label="Score"
                value={draft.score}
                wrong={wrongAt(errors, "score")}
                hint="A double is exact for whole numbers to 2^53."
                options={[
                  { value: "number", label: "number: a double" },
                  { value: "int64", label: "int64: exact whole numbers" },
                ]}
                onChoose={(score) => change({ score })}
              />
              <Select
                label="Ties"
                value={draft.ties}
                wrong={wrongAt(errors, "ties")}
                hint="How equal scores rank."
                options={[
                  { value: "shared", label: "shared: 1-2-2-4" },
                  { value: "earliest", label: "earliest: first to reach the score" },
                  { value: "member", label: "member: by id, ascending" },
                ]}
                onChoose={(ties) => change({ ties })}
              />
            </Pair>
            <Tick label="allow_op" isOn={draft.allow_op} wrong={wrongAt(errors, "allow_op")} onChange={(allow_op) => change({ allow_op })}>
              Let a submission choose its own <code>op</code>: best, last, first or sum.
            </Tick>
            <Tick label="dense" isOn={draft.dense} wrong={wrongAt(errors, "dense")} onChange={(dense) => change({ dense })}>
              Keep dense ranks (1-2-2-3) ready.
            </Tick>
            <Tick label="player_writes" isOn={draft.player_writes} wrong={wrongAt(errors, "player_writes")} onChange={(player_writes) => change({ player_writes })}>
              A player’s token may submit for itself; else only server keys do.
            </Tick>
          </Part>

          <Windows draft={draft} errors={errors} change={change} />

          <Part title="Time">
            <Pair>
              <Input label="Timezone" list="console-zones" {...text("timezone")} onFocus={() => setZones(ZONES)} wrong={wrongAt(errors, "timezone")} hint="Where the board’s days begin: any IANA name." />
              <Input label="Lateness" {...text("lateness")} wrong={wrongAt(errors, "lateness")} hint="How old a score’s own time may be: an ISO duration, such as P1D." />
            </Pair>
            <datalist id="console-zones">
              {zones.map((zone) => (
                <option key={zone} value={zone} />
              ))}
            </datalist>
          </Part>

          <Part title="Groups">
            <TextArea
              label="Groups"
              {...text("groups")}
              placeholder={"country\nregion, city"}
              wrong={wrongWithin(errors, "groups")}
              hint="Each line is also ranked, besides the whole board: one dimension, or several separated by commas."
            />
            <Pair>
              <Input
                label="Timezone by"
                {...text("timezone_by")}
                wrong={wrongAt(errors, "timezone_by")}
                hint="A dimension whose values have their own timezones, such as a campus."
              />
              <TextArea
                label="Timezones"
                {...text("timezones")}
                placeholder="kyoto = Asia/Tokyo"
                wrong={wrongWithin(errors, "timezones")}
                hint="For “timezone by”: value = zone, one per line. Other values use the board’s timezone."
              />
            </Pair>
          </Part>

          <Part title="Limits" wrong={wrongAt(errors, "limits")} hint="Submissions outside these limits are refused. Empty: no limit.">
            <Pair>
              <Input label="Min" inputMode="decimal" {...text("min")} wrong={wrongAt(errors, "limits.min")} hint="The lowest score." />
              <Input label="Max" inputMode="decimal" {...text("max")} wrong={wrongAt(errors, "limits.max")} hint="The highest score." />
              <Input
                label="Max change"
                inputMode="decimal"
                {...text("max_change")}
                wrong={wrongAt(errors, "limits.max_change")}
                hint="How far one submission may move the entry."
              />
            </Pair>
          </Part>

          <Archive draft={draft} errors={errors} change={change} />

          <Part title="Further">
            <TextArea
              label="Feeds"
              {...text("feeds")}
              placeholder="global/score"
              wrong={wrongWithin(errors, "feeds")}
              hint="Boards that also receive every submission, under their own definitions: project/board, one per line."
            />
            <Input label="Shards" inputMode="numeric" {...text("shards")} wrong={wrongAt(errors, "shards")} hint="The number of hash slots of a cluster that hold the members: 1 to 256." />
            <TextArea
              label="Keys"
              {...text("keys")}
              placeholder={"weekly = leaderboard:{project}:weekly:{slot}"}
              wrong={wrongWithin(errors, "keys")}
              hint="Your own key names in Valkey: window = template, one per line; for a group, window:dimension. Placeholders: {project} {board} {slot} {yyyymmdd} {yyyyww} {yyyymm} {group.NAME}."
            />
            <Tick label="adopt" isOn={draft.adopt} wrong={wrongAt(errors, "adopt")} onChange={(adopt) => change({ adopt })}>
              Take over sorted sets that another program has under these names. Dropping the board leaves them.
            </Tick>
            <Pair>
              <Select
                label="Rating"
                value={draft.rating}
                wrong={wrongWithin(errors, "rating")}
                hint="Scores come from matches, not from submissions."
                options={[
                  { value: "", label: "none" },
                  { value: "elo", label: "elo" },
                  { value: "glicko2", label: "glicko2" },
                  { value: "openskill", label: "openskill" },
                ]}
                onChoose={(rating) => change({ rating })}
              />
              {draft.rating && (
                <TextArea label="Constants" {...text("constants")} placeholder={"k = 32\ninitial = 1000"} hint="Constants of the rating: name = value, one per line. Other constants have their defaults." />
              )}
            </Pair>
          </Part>

          <div className={styles["save"]}>
            <Link to={isNew ? ["console", "boards"] : ["console", "boards", at.project, at.board]} className={buttonClass()}>
              Cancel
            </Link>
            <Button type="submit" look="primary" disabled={isSaving}>
              {isNew ? "Define the board" : "Save the changes"}
            </Button>
          </div>
        </div>
        <PreviewSheet at={at} preview={preview} errors={errors} json={JSON.stringify(made.definition, null, 2)} />
      </form>
    </>
  );
}

const ZONES = [...new Set(["UTC", ...Intl.supportedValuesOf("timeZone")])];

/** Focuses the first wrong control, or the error of the whole form. */
function focusWrong(form: HTMLFormElement | null): void {
  const wrong = form?.querySelector<HTMLElement>("[aria-invalid=true]") ?? form?.querySelector<HTMLElement>("[role=alert]");
  wrong?.focus();
}

/** Why the server refused; a conflict says what to do instead. */
function Refusal({ problem }: { problem: Problem }) {
  return (
    <div role="alert" tabIndex={-1} className={styles["refusal"]}>
      <strong>{problem.title}</strong>
      <p>{problem.message}</p>
    </div>
  );
}
