/** Dead letters: what could not be archived or counted, why, and what to do. */
import { useState } from "react";
import { ask, type Schemas } from "../../lib/client";
import { asProblem } from "../../lib/problem";
import { useAsk } from "../../lib/useAsk";
import { counted } from "../../lib/words";
import { Button, EmptyState, Moment, say, Sheet, Table } from "../../ui";
import styles from "./console.module.css";
import type { ViewProps } from "./index";
import { Confirm, Heading, Of, Told, Wide } from "./parts";
import { consoleApi } from "./session";

type Letter = Schemas["DeadLetter"];

export function DeadLetters(_: ViewProps) {
  const letters = useAsk("dead letters", async (signal) => ask<Schemas["DeadLetters"]>(consoleApi.GET("/v1/dead-letters", { signal })), { every: 5_000 });
  const [leaving, setLeaving] = useState<Letter>();
  const retry = async (letter: Letter) => {
    try {
      await ask(consoleApi.POST("/v1/dead-letters/{letter}/retry", { params: { path: { letter: letter.id } } }));
      say("It is back in its journal");
    } catch (error) {
      say(asProblem(error).message, { isBad: true });
    }
    letters.again();
  };
  return (
    <>
      <Heading title="Dead letters" about={letters.data && counted(letters.data.total, "letter")} />
      <Sheet as="div">
        <Told asked={letters}>
          {({ letters: listed }) =>
            listed.length ? (
              <Wide label="Dead letters">
                <Table caption="Dead letters, newest first">
                  <thead>
                    <tr>
                      <th scope="col">Of</th>
                      <th scope="col">Recorded</th>
                      <th scope="col">Reason</th>
                      <th scope="col">Content</th>
                      <th scope="col">
                        <span className="unseen">Actions</span>
                      </th>
                    </tr>
                  </thead>
                  <tbody>
                    {listed.map((letter) => (
                      <tr key={letter.id}>
                        <th scope="row">{letter.board ?? "a campus"}</th>
                        <td>
                          <Moment at={letter.recorded_at} />
                        </td>
                        <td>{letter.why}</td>
                        <td className={styles["long"]}>
                          <code>{letter.summary}</code>
                        </td>
                        <td className={styles["end"]}>
                          {letter.source === "journal" && (
                            <Button small onClick={() => void retry(letter)}>
                              <Of does="Try" what={letter.id} more=" again" />
                            </Button>
                          )}{" "}
                          <Button small look="danger" onClick={() => setLeaving(letter)}>
                            <Of does="Discard" what={letter.id} more="…" />
                          </Button>
                        </td>
                      </tr>
                    ))}
                  </tbody>
                </Table>
              </Wide>
            ) : (
              <EmptyState title="No dead letters">Journal entries that PostgreSQL refused five times appear here, and campus events that cannot count.</EmptyState>
            )
          }
        </Told>
      </Sheet>
      {leaving && (
        <Confirm
          title="Discard this letter?"
          does="Discard the letter"
          onClose={() => setLeaving(undefined)}
          act={async () => {
            await ask(consoleApi.DELETE("/v1/dead-letters/{letter}", { params: { path: { letter: leaving.id } } }));
            say("Discarded");
            letters.again();
          }}
        >
          <p>Its effect stays on the board, but a rebuild will not have it. This cannot be undone.</p>
        </Confirm>
      )}
    </>
  );
}
