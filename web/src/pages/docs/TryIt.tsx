import { type FormEvent, useState } from "react";
import { access, useAccess } from "../../lib/access";
import { curl, type Described, type Document, exampleOf, type Filled, requestPath } from "../../lib/openapi";
import { root } from "../../router/router";
import { Button, Input, say, TextArea } from "../../ui";
import styles from "./docs.module.css";

interface Answer {
  status: string;
  seconds: number;
  text: string;
}

const SHOWN = 20_000; // characters of an answer
const ENDLESS = "text/event-stream";

export function TryIt({ document, described }: { document: Document; described: Described }) {
  const { method, operation } = described;
  const [mediaType, media] = Object.entries(operation.requestBody?.content ?? {})[0] ?? [];
  const example = exampleOf(document, media);
  const [filled, setFilled] = useState<Filled>({ values: {}, body: example === undefined ? "" : JSON.stringify(example, null, 2) });
  const [answer, setAnswer] = useState<Answer>();
  const [isBusy, setBusy] = useState(false);
  const key = useAccess("key");
  const parameters = (operation.parameters ?? []).filter((each) => each.in === "path" || each.in === "query");
  const command = curl(root.href, described, filled, mediaType);

  const send = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    const began = performance.now();
    try {
      const headers: Record<string, string> = {};
      if (access("key")) headers["Authorization"] = `Bearer ${access("key")}`;
      if (mediaType) headers["Content-Type"] = mediaType;
      const response = await fetch(new URL(requestPath(described, filled), root), { method, headers, body: mediaType ? filled.body : null });
      const text = response.headers.get("Content-Type")?.startsWith(ENDLESS) ? await firstPiece(response) : await response.text();
      setAnswer({ status: `${response.status} ${response.statusText}`, seconds: (performance.now() - began) / 1000, text: pretty(text) });
    } catch (error) {
      setAnswer({ status: "No answer", seconds: (performance.now() - began) / 1000, text: String(error) });
    } finally {
      setBusy(false);
    }
  };
  return (
    <section>
      <h3>Try it</h3>
      <form onSubmit={send} className={styles["try"]}>
        <div className={styles["inputs"]}>
          {parameters.map((each) => (
            <Input
              key={`${each.in}:${each.name}`}
              label={each.name}
              required={each.in === "path"}
              placeholder={String(each.example ?? each.schema?.examples?.[0] ?? "")}
              value={filled.values[`${each.in}:${each.name}`] ?? ""}
              onChange={(event) => setFilled({ ...filled, values: { ...filled.values, [`${each.in}:${each.name}`]: event.target.value } })}
            />
          ))}
        </div>
        {mediaType && <TextArea label={`Body (${mediaType})`} rows={6} value={filled.body} onChange={(event) => setFilled({ ...filled, body: event.target.value })} />}
        <div className={styles["actions"]}>
          <Button type="submit" look="primary" disabled={isBusy}>
            Send
          </Button>
          <Button onClick={() => navigator.clipboard.writeText(command).then(() => say("Copied"), () => say("The browser does not allow copying.", { isBad: true }))}>
            Copy as curl
          </Button>
          {!key && <span className={styles["soft"]}>Without a key, most answers are 401.</span>}
        </div>
      </form>
      {answer && (
        <div role="status">
          <p className={styles["soft"]}>
            {answer.status} · {answer.seconds.toFixed(3)} s
          </p>
          <pre className={styles["example"]} tabIndex={0} aria-label="Answer">
            {answer.text}
          </pre>
        </div>
      )}
    </section>
  );
}

/** The first part of an endless stream. */
async function firstPiece(response: Response): Promise<string> {
  const reader = response.body?.getReader();
  const piece = await reader?.read();
  await reader?.cancel();
  return new TextDecoder().decode(piece?.value);
}

function pretty(text: string): string {
  let shown = text;
  try {
    shown = JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    // Not JSON: shown as it came.
  }
  return shown.length > SHOWN ? `${shown.slice(0, SHOWN)}\n…` : shown;
}
