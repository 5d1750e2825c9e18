/** The API keys of a project: create, list, revoke. */
import { type FormEvent, useState } from "react";
import { ask, type Schemas } from "../../lib/client";
import { asProblem } from "../../lib/problem";
import { useAsk } from "../../lib/useAsk";
import { useQuery } from "../../router/router";
import { Badge, Button, EmptyState, Input, Moment, say, Sheet, Table } from "../../ui";
import styles from "./console.module.css";
import type { ViewProps } from "./index";
import { Confirm, Heading, Of, ProjectPicker, ShownOnce, Told, useProjects, Wide } from "./parts";
import { consoleApi, isOperator, type Session } from "./session";

type Key = Schemas["KeyAnswer"];

const SCOPES = [
  { name: "read", about: "all reads" },
  { name: "submit", about: "submitting scores, reporting matches, setting metadata" },
  { name: "admin", about: "all of that; defining and dropping boards, removing members, managing keys and secrets" },
];

const ABOUT = (
  <>
    Programs call the API with these keys. Only <code>laurels keys create</code> makes keys for every project.
  </>
);

/** The project of a view, and a function to choose another. */
export function useProject(session: Session): [string, (project: string) => void] {
  const { data = [] } = useProjects(session);
  const [{ project }, change] = useQuery({ project: isOperator(session) ? (data[0] ?? "") : session.project });
  return [isOperator(session) ? project : session.project, (project) => change({ project: project.trim() })];
}

export function Keys({ session }: ViewProps) {
  const [project, choose] = useProject(session);
  const keys = useAsk(project ? `keys of ${project}` : null, async (signal) =>
    ask<Schemas["Keys"]>(consoleApi.GET("/v1/projects/{project}/keys", { params: { path: { project } }, signal })),
  );
  const [shown, setShown] = useState<string>();
  const [leaving, setLeaving] = useState<Key>();
  const isOwn = (key: Key) => key.id === session.key;
  return (
    <>
      <Heading title="Keys" about={ABOUT}>
        <ProjectPicker session={session} project={project} onChoose={choose} />
      </Heading>
      <div className={styles["columns"]}>
        <Sheet as="div">
          {project ? (
            <Told asked={keys}>
              {({ keys: listed }) =>
                listed.length ? (
                  <Wide label={`Keys of ${project}`}>
                    <Table caption={`Keys of ${project}`}>
                      <thead>
                        <tr>
                          <th scope="col">Key</th>
                          <th scope="col">Scopes</th>
                          <th scope="col">Created</th>
                          <th scope="col">State</th>
                        </tr>
                      </thead>
                      <tbody>
                        {listed.map((key) => (
                          <tr key={key.id}>
                            <th scope="row">
                              <code>{key.prefix}</code>
                              {key.label && <span className={styles["soft"]}> {key.label}</span>}
                              {isOwn(key) && <Badge tone="leaf">this session’s</Badge>}
                            </th>
                            <td>{key.scopes.join(", ")}</td>
                            <td>
                              <Moment at={key.created_at} />
                            </td>
                            <td className={styles["end"]}>
                              {key.revoked_at ? (
                                <span className={styles["soft"]}>
                                  revoked <Moment at={key.revoked_at} />
                                </span>
                              ) : (
                                <Button small look="danger" onClick={() => setLeaving(key)}>
                                  <Of does="Revoke" what={key.prefix} more="…" />
                                </Button>
                              )}
                            </td>
                          </tr>
                        ))}
                      </tbody>
                    </Table>
                  </Wide>
                ) : (
                  <EmptyState title={`${project} has no keys`}>Keys for every project work here, too.</EmptyState>
                )
              }
            </Told>
          ) : (
            <EmptyState title="Choose a project">Type its name; it may have no board yet.</EmptyState>
          )}
        </Sheet>
        {project && (
          <MakeKey
            project={project}
            onMade={(secret) => {
              setShown(secret);
              keys.again();
            }}
          />
        )}
      </div>
      {shown !== undefined && <ShownOnce title="A new key" secret={shown} onClose={() => setShown(undefined)} />}
      {leaving && (
        <Confirm
          title={`Revoke ${leaving.prefix}?`}
          does="Revoke the key"
          onClose={() => setLeaving(undefined)}
          act={async () => {
            const params = { path: { project, prefix: leaving.prefix } };
            await ask(consoleApi.DELETE("/v1/projects/{project}/keys/{prefix}", { params }));
            say(`${leaving.prefix} is revoked`);
            keys.again();
          }}
        >
          <p>Every process refuses the key at once. This cannot be undone.</p>
          {isOwn(leaving) && <p className={styles["warning"]}>You are signed in with this key: you will be signed out.</p>}
        </Confirm>
      )}
    </>
  );
}

function MakeKey({ project, onMade }: { project: string; onMade: (secret: string) => void }) {
  const [scopes, setScopes] = useState<readonly string[]>(["read"]);
  const [label, setLabel] = useState("");
  const [wrong, setWrong] = useState("");
  const make = async (event: FormEvent) => {
    event.preventDefault();
    setWrong("");
    try {
      const body = { scopes, label } as never; // the document has this schema inline
      const made = await ask<Schemas["CreatedKey"]>(consoleApi.POST("/v1/projects/{project}/keys", { params: { path: { project } }, body }));
      setLabel("");
      onMade(made.key);
    } catch (error) {
      setWrong(asProblem(error).message);
    }
  };
  return (
    <Sheet isPadded>
      <h2>Create a key</h2>
      <form onSubmit={(event) => void make(event)} className={styles["form"]}>
        <fieldset className={styles["part"]}>
          <legend className={styles["soft"]}>Scopes</legend>
          {SCOPES.map(({ name, about }) => (
            <label key={name} className={styles["tick"]}>
              <input
                type="checkbox"
                checked={scopes.includes(name)}
                onChange={(event) => setScopes(event.target.checked ? [...scopes, name] : scopes.filter((each) => each !== name))}
              />
              <span>
                <strong>{name}</strong> {about}
              </span>
            </label>
          ))}
        </fieldset>
        <Input label="Label" maxLength={200} value={label} hint="To recognize it by." onChange={(event) => setLabel(event.target.value)} />
        {wrong && (
          <p role="alert" className={styles["wrong"]}>
            {wrong}
          </p>
        )}
        <Button type="submit" look="primary" disabled={!scopes.length}>
          Create the key
        </Button>
      </form>
    </Sheet>
  );
}
