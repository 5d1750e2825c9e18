/** The API, as its OpenAPI document describes it; every operation can be tried. */
import { useEffect, useMemo, useRef } from "react";
import { byTag, type Described, type Document } from "../../lib/openapi";
import { noAnswer, problemOf } from "../../lib/problem";
import { useAsk } from "../../lib/useAsk";
import { readable } from "../../lib/words";
import { Link, root, useQuery } from "../../router/router";
import { ErrorState, Input, Skeleton, Title } from "../../ui";
import styles from "./docs.module.css";
import { Explained } from "./Explained";
import { OperationSheet } from "./OperationSheet";

async function fetchDocument(signal: AbortSignal): Promise<Document> {
  const answer = await fetch(new URL("openapi.json", root), { signal }).catch(() => {
    throw noAnswer();
  });
  if (!answer.ok) throw problemOf(answer.status, null);
  return (await answer.json()) as Document;
}

export default function Docs() {
  const asked = useAsk("openapi", fetchDocument);
  return (
    <>
      <Title>API</Title>
      {asked.problem ? (
        <ErrorState problem={asked.problem} again={asked.again} />
      ) : asked.data ? (
        <Reference document={asked.data} />
      ) : (
        <div role="status" aria-label="Loading" className={styles["bones"]}>
          <Skeleton width="30%" />
          <Skeleton />
          <Skeleton width="80%" />
        </div>
      )}
    </>
  );
}

const matches = (text: string) => {
  const wanted = text.toLowerCase().split(/\s+/).filter(Boolean);
  return ({ method, path, operation }: Described) => {
    const said = `${method} ${path} ${operation.summary ?? ""}`.toLowerCase();
    return wanted.every((word) => said.includes(word));
  };
};

function Reference({ document }: { document: Document }) {
  const [{ find, operation: opened }, change] = useQuery({ find: "", operation: "" });
  const tags = useMemo(() => byTag(document), [document]);
  const shown = tags.map((tag) => ({ ...tag, operations: tag.operations.filter(matches(find)) })).filter((tag) => tag.operations.length);
  const place = useRef<HTMLDivElement>(null);

  useEffect(() => {
    if (opened) place.current?.querySelector(`[data-operation="${CSS.escape(opened)}"]`)?.scrollIntoView({ block: "start" });
    // Scrolls once to the operation in the address.
  }, []);

  return (
    <div className={styles["columns"]}>
      <nav aria-label="Operations" className={styles["contents"]}>
        <Input label="Find" type="search" value={find} placeholder="submit, GET entries…" onChange={(event) => change({ find: event.target.value }, { replace: true })} />
        {shown.map((tag) => (
          <div key={tag.name}>
            <h2>{readable(tag.name || "others")}</h2>
            <ul role="list">
              {tag.operations.map(({ id, operation, path }) => (
                <li key={id}>
                  <Link
                    to={["docs"]}
                    query={{ find, operation: id }}
                    aria-current={id === opened || undefined}
                    onClick={() => requestAnimationFrame(() => place.current?.querySelector(`[data-operation="${CSS.escape(id)}"]`)?.scrollIntoView())}
                  >
                    {operation.summary ?? path}
                  </Link>
                </li>
              ))}
            </ul>
          </div>
        ))}
      </nav>
      <div ref={place} className={styles["reference"]}>
        <header>
          <h1>{document.info.title} API</h1>
          <Explained text={document.info.description ?? ""} />
          <p className={styles["soft"]}>
            Version {document.info.version} · <a href={new URL("openapi.json", root).href}>openapi.json</a>
          </p>
        </header>
        {!shown.length && <p role="status">No operation matches.</p>}
        {shown.map((tag) => (
          <section key={tag.name} aria-label={readable(tag.name || "others")}>
            <h2>{readable(tag.name || "others")}</h2>
            {tag.description && <p className={styles["soft"]}>{tag.description}</p>}
            {tag.operations.map((each) => (
              <OperationSheet
                key={each.id}
                document={document}
                described={each}
                isOpen={each.id === opened}
                onToggle={(isOpen) => (isOpen || each.id === opened) && change({ operation: isOpen ? each.id : "" }, { replace: true })}
              />
            ))}
          </section>
        ))}
      </div>
    </div>
  );
}
