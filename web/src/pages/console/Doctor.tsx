/** The findings of the doctor, the worst first, with fixes. */
import { ask, type Schemas } from "../../lib/client";
import { useAsk } from "../../lib/useAsk";
import { counted } from "../../lib/words";
import { Badge, Button, Sheet, Table } from "../../ui";
import styles from "./console.module.css";
import type { ViewProps } from "./index";
import { Heading, Told, Wide } from "./parts";
import { consoleApi } from "./session";

const ORDER = ["wrong", "warning", "ok"];
const TONES = { ok: "leaf", warning: "gold", wrong: "wrong" } as const;

export function Doctor(_: ViewProps) {
  const asked = useAsk("doctor", async (signal) => (await ask<Schemas["Findings"]>(consoleApi.GET("/v1/doctor", { signal }))).findings);
  const findings = [...(asked.data ?? [])].sort((one, other) => ORDER.indexOf(one.status) - ORDER.indexOf(other.status));
  const bad = findings.filter((finding) => finding.status !== "ok").length;
  const about = asked.data && (bad ? `${counted(bad, "finding")} to look at` : "No problems found");
  return (
    <>
      <Heading title="Doctor" about={about}>
        <Button onClick={asked.again}>Check again</Button>
      </Heading>
      <Sheet as="div">
        <Told asked={asked}>
          {() => (
            <Wide label="Findings">
              <Table caption="Findings, the worst first">
                <thead>
                  <tr>
                    <th scope="col">Check</th>
                    <th scope="col">State</th>
                    <th scope="col">Found</th>
                  </tr>
                </thead>
                <tbody>
                  {findings.map((finding) => (
                    <tr key={finding.name}>
                      <th scope="row">{finding.name}</th>
                      <td>
                        <Badge tone={TONES[finding.status]}>{finding.status}</Badge>
                      </td>
                      <td>
                        {finding.found}
                        {finding.fix && <p className={styles["soft"]}>{finding.fix}</p>}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </Table>
            </Wide>
          )}
        </Told>
      </Sheet>
    </>
  );
}
