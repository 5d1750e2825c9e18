/** The secrets that verify players' tokens and signatures of a project. */
import { type FormEvent, useState } from "react";
import { ask, type Schemas } from "../../lib/client";
import { asProblem, Problem } from "../../lib/problem";
import { useAsk } from "../../lib/useAsk";
import { Badge, Button, EmptyState, Input, Moment, say, Select, Sheet, Table, TextArea } from "../../ui";
import styles from "./console.module.css";
import type { ViewProps } from "./index";
import { useProject } from "./Keys";
import { Confirm, Heading, Of, ProjectPicker, ShownOnce, Told, Wide } from "./parts";
import { consoleApi } from "./session";

type Secret = Schemas["SecretAnswer"];

export function Secrets({ session }: ViewProps) {
  const [project, choose] = useProject(session);
  const secrets = useAsk(project ? `secrets of ${project}` : null, async (signal) =>
    ask<Schemas["Secrets"]>(consoleApi.GET("/v1/projects/{project}/secrets", { params: { path: { project } }, signal })),
  );
  const [shown, setShown] = useState<string>();
  const [leaving, setLeaving] = useState<Secret>();
  return (
    <>
      <Heading title="Secrets" about="Secrets verify players’ tokens and signed submissions. Two of a kind can be in force, so that you can replace one.">
        <ProjectPicker session={session} project={project} onChoose={choose} />
      </Heading>
      <div className={styles["columns"]}>
        <Sheet as="div">
          {project ? (
            <Told asked={secrets}>
              {({ secrets: listed }) =>
                listed.length ? (
                  <Wide label={`Secrets of ${project}`}>
                    <Table caption={`Secrets of ${project}`}>
                      <thead>
                        <tr>
                          <th scope="col">Secret</th>
                          <th scope="col">Verifies</th>
                          <th scope="col">Created</th>
                          <th scope="col">State</th>
                        </tr>
                      </thead>
                      <tbody>
                        {listed.map((secret) => (
                          <tr key={secret.id}>
                            <th scope="row">
                              <code>{secret.id}</code>
                              {secret.label && <span className={styles["soft"]}> {secret.label}</span>}
                            </th>
                            <td>
                              {secret.use === "players" ? "players’ tokens" : "signatures"}, {secret.algorithm}
                              {secret.required && <Badge tone="gold">required</Badge>}
                            </td>
                            <td>
                              <Moment at={secret.created_at} />
                            </td>
                            <td className={styles["end"]}>
                              {secret.revoked_at ? (
                                <span className={styles["soft"]}>
                                  revoked <Moment at={secret.revoked_at} />
                                </span>
                              ) : (
                                <Button small look="danger" onClick={() => setLeaving(secret)}>
                                  <Of does="Revoke" what={secret.id} more="…" />
                                </Button>
                              )}
                            </td>
                          </tr>
                        ))}
                      </tbody>
                    </Table>
                  </Wide>
                ) : (
                  <EmptyState title={`${project} has no secrets`}>Without a secret, players have no tokens and submissions are not signed.</EmptyState>
                )
              }
            </Told>
          ) : (
            <EmptyState title="Choose a project" />
          )}
        </Sheet>
        {project && (
          <MakeSecret
            project={project}
            onMade={(secret) => {
              if (secret === null) say("The public key is stored");
              else setShown(secret);
              secrets.again();
            }}
          />
        )}
      </div>
      {shown !== undefined && <ShownOnce title="A new secret" secret={shown} onClose={() => setShown(undefined)} />}
      {leaving && (
        <Confirm
          title={`Revoke ${leaving.id}?`}
          does="Revoke the secret"
          onClose={() => setLeaving(undefined)}
          act={async () => {
            const params = { path: { project, id: leaving.id } };
            await ask(consoleApi.DELETE("/v1/projects/{project}/secrets/{id}", { params }));
            say(`${leaving.id} is revoked`);
            secrets.again();
          }}
        >
          <p>{leaving.use === "players" ? "Tokens that it signed are refused at once." : "Submissions that it signed are refused at once."}</p>
        </Confirm>
      )}
    </>
  );
}

const ALGORITHMS = ["HS256", "EdDSA", "ES256", "RS256"];

function MakeSecret({ project, onMade }: { project: string; onMade: (secret: string | null) => void }) {
  const [use, setUse] = useState("players");
  const [algorithm, setAlgorithm] = useState("HS256");
  const [publicKey, setPublicKey] = useState("");
  const [isRequired, setRequired] = useState(false);
  const [label, setLabel] = useState("");
  const [problem, setProblem] = useState<Problem>();
  const isOwnKey = use === "players" && algorithm !== "HS256";
  const make = async (event: FormEvent) => {
    event.preventDefault();
    setProblem(undefined);
    try {
      const wanted = use === "players" ? { use, algorithm, ...(isOwnKey ? { public_key: publicKey } : {}) } : { use, required: isRequired };
      const body = { ...wanted, label } as never; // the document has this schema inline
      const made = await ask<Schemas["CreatedSecret"]>(consoleApi.POST("/v1/projects/{project}/secrets", { params: { path: { project } }, body }));
      setLabel("");
      setPublicKey("");
      onMade(made.secret);
    } catch (error) {
      setProblem(asProblem(error));
    }
  };
  return (
    <Sheet isPadded>
      <h2>Create a secret</h2>
      <form onSubmit={(event) => void make(event)} className={styles["form"]}>
        <Select
          label="For"
          value={use}
          options={[
            { value: "players", label: "players’ tokens (JWT)" },
            { value: "signatures", label: "signatures on submissions" },
          ]}
          onChoose={setUse}
        />
        {use === "players" ? (
          <Select
            label="Algorithm"
            value={algorithm}
            wrong={problem?.of("algorithm") || undefined}
            hint={isOwnKey ? "You keep the private key. Enter the public one." : "Laurels makes the secret and shows it once."}
            options={ALGORITHMS.map((value) => ({ value, label: value }))}
            onChoose={setAlgorithm}
          />
        ) : (
          <label className={styles["tick"]}>
            <input type="checkbox" checked={isRequired} onChange={(event) => setRequired(event.target.checked)} />
            <span>Required: unsigned submissions are refused, including those of this console.</span>
          </label>
        )}
        {isOwnKey && (
          <TextArea
            label="Public key"
            required
            placeholder="-----BEGIN PUBLIC KEY-----"
            value={publicKey}
            wrong={problem?.of("public_key") || undefined}
            hint="In PEM format."
            onChange={(event) => setPublicKey(event.target.value)}
          />
        )}
        <Input label="Label" maxLength={200} value={label} hint="To recognize it by." onChange={(event) => setLabel(event.target.value)} />
        {problem && !problem.of("public_key") && !problem.of("algorithm") && (
          <p role="alert" className={styles["wrong"]}>
            {problem.message}
          </p>
        )}
        <Button type="submit" look="primary">
          {isOwnKey ? "Store the public key" : "Create the secret"}
        </Button>
      </form>
    </Sheet>
  );
}
