/** Shows what the definition would do now, beside the form, and follows its changes. */
import { ask, type Schemas } from "../../lib/client";
import type { FieldError, Problem } from "../../lib/problem";
import { useAsk } from "../../lib/useAsk";
import { list } from "../../lib/words";
import { Drops } from "./Drops";
import { ErrorState, Moment, Sheet } from "../../ui";
import styles from "./console.module.css";
import { useSettled, Wide } from "./parts";
import { consoleApi } from "./session";

const NAME = /^[A-Za-z0-9._-]{1,64}$/;
const SETTLED = 350; // milliseconds without typing before the preview is updated

/** The board to preview. */
export interface At {
  project: string;
  board: string;
}

interface Previewed {
  data: Schemas["Preview"] | undefined;
  problem: Problem | undefined;
  isStale: boolean;
  isReady: boolean;
}

export function usePreview(at: At, definition: string, isSendable: boolean): Previewed {
  const isNamed = NAME.test(at.project) && NAME.test(at.board);
  const settled = useSettled(isNamed && isSendable ? `${at.project}/${at.board} ${definition}` : null, SETTLED);
  const asked = useAsk(
    settled,
    async (signal) => {
      const [, project = "", board = "", text = "{}"] = /^([^/]+)\/(\S+) (.*)$/s.exec(settled ?? "") ?? [];
      const params = { path: { project, board } };
      const body = JSON.parse(text) as Schemas["BoardDefinition"];
      return ask<Schemas["Preview"]>(consoleApi.POST("/v1/projects/{project}/boards/{board}/preview", { params, body, signal }));
    },
    { keep: true },
  );
  return { data: asked.data, problem: asked.problem, isStale: asked.isStale || asked.problem !== undefined, isReady: isNamed };
}

export function PreviewSheet({ at, preview, errors, json }: { at: At; preview: Previewed; errors: readonly FieldError[]; json: string }) {
  const { data, problem } = preview;
  return (
    <Sheet as="aside" isPadded aria-label="Preview" className={styles["preview"] ?? ""}>
      <h2>Preview</h2>
      <div role="status">
        {!preview.isReady && <p className={styles["soft"]}>Give the board a name to see its windows and keys.</p>}
        {data?.conflict && !problem && <p className={styles["warning"]}>{data.conflict}</p>}
        {data && data.drops.length > 0 && !problem && (
          <div className={styles["warning"]}>
            <p>This drops entries. Saving asks first:</p>
            <Drops drops={data.drops} />
          </div>
        )}
        {errors.length > 0 && (
          <ul className={styles["wrongs"]}>
            {errors.map((error) => (
              <li key={`${error.field} ${error.detail}`}>
                <code>{error.field}</code> {error.detail}
              </li>
            ))}
          </ul>
        )}
        {data && !problem && !data.is_new && (
          <p className={styles["soft"]}>{data.changed.length ? `Changes ${list(data.changed)}.` : "Same as now."}</p>
        )}
      </div>
      {problem && problem.status !== 422 && <ErrorState problem={problem} />}
      {preview.isReady && data && (
        <div className={preview.isStale ? styles["stale"] : undefined}>
          {data.windows.map((window) => (
            <section key={window.period} aria-label={`Window ${window.period}`}>
              <h3>
                {window.period} <span className={styles["soft"]}>{window.slot}</span>
              </h3>
              <p className={styles["soft"]}>
                {window.starts_at ? <Moment at={window.starts_at} /> : "always"} – {window.ends_at ? <Moment at={window.ends_at} /> : "never ends"}
                {window.next_slot && <>; next is {window.next_slot}</>}
              </p>
              <ul className={styles["keys"]} aria-label={`Keys of ${window.period}`}>
                {window.keys.map((each) => (
                  <li key={each.group}>
                    <code>{each.key}</code>
                  </li>
                ))}
              </ul>
            </section>
          ))}
        </div>
      )}
      <details className={styles["json"]}>
        <summary>As JSON</summary>
        <Wide label="The definition as JSON">
          <pre>{json}</pre>
        </Wide>
        <p className={styles["soft"]}>
          <code>{`PUT /v1/projects/${at.project || "…"}/boards/${at.board || "…"}`}</code>
        </p>
      </details>
    </Sheet>
  );
}
