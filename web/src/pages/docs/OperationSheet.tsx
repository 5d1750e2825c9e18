/** One operation: what it takes, what it answers, and a way to try it. */
import { useState } from "react";
import { boundWords, type Described, type Document, exampleOf, type Media, resolved, type Schema, typeWords } from "../../lib/openapi";
import { scrollBox, Table } from "../../ui";
import styles from "./docs.module.css";
import { Explained } from "./Explained";
import { TryIt } from "./TryIt";

interface OperationSheetProps {
  document: Document;
  described: Described;
  isOpen: boolean;
  onToggle: (isOpen: boolean) => void;
}

export function OperationSheet({ document, described, isOpen, onToggle }: OperationSheetProps) {
  const { id, method, path, operation } = described;
  return (
    <details className={styles["operation"]} data-operation={id} open={isOpen} onToggle={(event) => event.currentTarget.open !== isOpen && onToggle(event.currentTarget.open)}>
      <summary>
        <span className={styles["method"]} data-method={method}>
          {method}
        </span>
        <code className={styles["path"]}>{path}</code>
        <span className={styles["summary"]}>{operation.summary}</span>
      </summary>
      {isOpen && (
        <div className={styles["body"]}>
          <Explained text={operation.description ?? ""} />
          <Parameters document={document} described={described} />
          {operation.requestBody && <Medias title="Body" document={document} content={operation.requestBody.content} />}
          <Answers document={document} described={described} />
          <TryIt document={document} described={described} />
        </div>
      )}
    </details>
  );
}

function Parameters({ document, described }: { document: Document; described: Described }) {
  const parameters = described.operation.parameters ?? [];
  if (!parameters.length) return null;
  return (
    <section>
      <h3>Parameters</h3>
      <div className={scrollBox} role="region" aria-label="Parameters, scrollable" tabIndex={0}>
        <Table caption="Parameters">
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Value</th>
              <th scope="col">Meaning</th>
            </tr>
          </thead>
          <tbody>
            {parameters.map((each) => (
              <tr key={`${each.in}:${each.name}`}>
                <th scope="row">
                  <code>{each.name}</code>
                  <span className={styles["soft"]}>
                    {" "}
                    {each.in}
                    {each.required && ", required"}
                  </span>
                </th>
                <td>
                  {each.schema && typeWords(document, each.schema)}
                  <span className={styles["soft"]}> {each.schema && boundWords(resolved(document, each.schema))}</span>
                </td>
                <td>
                  <Explained text={each.description ?? each.schema?.description ?? ""} />
                </td>
              </tr>
            ))}
          </tbody>
        </Table>
      </div>
    </section>
  );
}

function Answers({ document, described }: { document: Document; described: Described }) {
  const answers = Object.entries(described.operation.responses);
  const good = answers.filter(([status]) => status.startsWith("2"));
  const bad = answers.filter(([status]) => !status.startsWith("2"));
  return (
    <>
      {good.map(([status, answer]) => (
        <section key={status}>
          <h3>
            Answer {status} <span className={styles["soft"]}>{answer.description}</span>
          </h3>
          {answer.content && <Medias document={document} content={answer.content} />}
        </section>
      ))}
      {bad.length > 0 && (
        <section>
          <h3>Problems</h3>
          <dl className={styles["problems"]}>
            {bad.map(([status, answer]) => (
              <div key={status}>
                <dt>{status}</dt>
                <dd>
                  <Explained text={answer.description ?? ""} />
                </dd>
              </div>
            ))}
          </dl>
        </section>
      )}
    </>
  );
}

function Medias({ title, document, content }: { title?: string; document: Document; content: Record<string, Media> }) {
  return Object.entries(content).map(([mediaType, media]) => {
    const example = exampleOf(document, media);
    return (
      <section key={mediaType}>
        {title && <h3>{title}</h3>}
        <p className={styles["soft"]}>
          <code>{mediaType}</code>
        </p>
        {media.schema && <Fields document={document} schema={media.schema} depth={0} />}
        {example !== undefined && (
          <pre className={styles["example"]} tabIndex={0} aria-label="Example">
            {typeof example === "string" ? example : JSON.stringify(example, null, 2)}
          </pre>
        )}
      </section>
    );
  });
}

const DEEPEST = 4;

/** The fields of a schema, of its items or of its alternatives. */
function insides(document: Document, given: Schema): Schema[] {
  const schema = resolved(document, given);
  if (schema.properties) return [schema];
  const parts = schema.anyOf ?? schema.oneOf ?? schema.allOf ?? (schema.items ? [schema.items] : []);
  return parts.flatMap((part) => insides(document, part));
}

function Fields({ document, schema, depth }: { document: Document; schema: Schema; depth: number }) {
  const inside = insides(document, schema);
  if (!inside.length || depth > DEEPEST) return null;
  return inside.map((each, index) => (
    <ul key={index} role="list" className={styles["fields"]}>
      {Object.entries(each.properties ?? {}).map(([name, field]) => (
        <Field key={name} document={document} name={name} given={field} isRequired={each.required?.includes(name) ?? false} depth={depth} />
      ))}
    </ul>
  ));
}

interface FieldProps {
  document: Document;
  name: string;
  given: Schema;
  isRequired: boolean;
  depth: number;
}

function Field({ document, name, given, isRequired, depth }: FieldProps) {
  const [isOpen, setOpen] = useState(false);
  const schema = resolved(document, given);
  const hasMore = depth < DEEPEST && insides(document, given).length > 0;
  const about = schema.description ?? "";
  return (
    <li>
      <code>{name}</code>{" "}
      <span className={styles["soft"]}>
        {typeWords(document, given)}
        {isRequired && ", required"} {boundWords(schema)}
      </span>
      {about && <Explained text={about} />}
      {hasMore && (
        <details onToggle={(event) => setOpen(event.currentTarget.open)}>
          <summary>Fields of {name}</summary>
          {isOpen && <Fields document={document} schema={given} depth={depth + 1} />}
        </details>
      )}
    </li>
  );
}
