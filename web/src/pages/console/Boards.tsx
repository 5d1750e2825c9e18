/** Every board that the session may see, by project. */
import { ask, type Schemas } from "../../lib/client";
import { counted, list } from "../../lib/words";
import { useAsk } from "../../lib/useAsk";
import { Link, navigate } from "../../router/router";
import { Badge, buttonClass, EmptyState, Moment, numberCell, Select, Sheet, Table } from "../../ui";
import { labelOf } from "./definition";
import type { ViewProps } from "./index";
import { Heading, Told, useProjects, Wide } from "./parts";
import { consoleApi, isOperator } from "./session";

export function Boards({ session, path }: ViewProps) {
  const projects = useProjects(session);
  const chosen = path[0] ?? (isOperator(session) ? projects.data?.[0] : session.project) ?? "";
  const boards = useAsk(
    chosen ? `boards of ${chosen}` : null,
    async (signal) => {
      const params = { path: { project: chosen } };
      return ask<Schemas["Boards"]>(consoleApi.GET("/v1/projects/{project}/boards", { params, signal }));
    },
    { every: 10_000 },
  );
  const make = (
    <Link to={["console", "new"]} query={chosen ? { project: chosen } : {}} className={buttonClass("primary")}>
      New board
    </Link>
  );
  return (
    <>
      <Heading title="Boards" about={projects.data && counted(projects.data.length, "project")}>
        {isOperator(session) && projects.data && projects.data.length > 0 && (
          <Select
            label="Project"
            isBare
            options={projects.data.map((value) => ({ value, label: value }))}
            value={chosen}
            onChoose={(project) => navigate(["console", "boards", project])}
          />
        )}
        {make}
      </Heading>
      <Sheet as="div">
        {projects.data && !chosen ? (
          <EmptyState title="There is no board yet">Its first board creates a project.</EmptyState>
        ) : (
          <Told asked={projects.problem && !chosen ? { ...boards, problem: projects.problem, again: projects.again } : boards}>
            {({ boards }) =>
              boards.length ? (
                <Wide label={`Boards of ${chosen}`}>
                  <Table caption={`Boards of ${chosen}`}>
                    <thead>
                      <tr>
                        <th scope="col">Board</th>
                        <th scope="col">Windows</th>
                        <th scope="col">Ranks</th>
                        <th scope="col">Changed</th>
                        <th scope="col" className={numberCell}>
                          Version
                        </th>
                      </tr>
                    </thead>
                    <tbody>
                      {boards.map((board) => (
                        <tr key={board.board}>
                          <th scope="row">
                            <Link to={["console", "boards", board.project, board.board]}>{board.board}</Link>
                          </th>
                          <td>{list(board.definition.windows.map(labelOf))}</td>
                          <td>
                            <Ranked definition={board.definition} />
                          </td>
                          <td>
                            <Moment at={board.updated_at} />
                          </td>
                          <td className={numberCell}>{board.version}</td>
                        </tr>
                      ))}
                    </tbody>
                  </Table>
                </Wide>
              ) : (
                <EmptyState title={`${chosen} has no board yet`} action={make}>
                  Define one to submit scores.
                </EmptyState>
              )
            }
          </Told>
        )}
      </Sheet>
    </>
  );
}

function Ranked({ definition }: { definition: Schemas["BoardDefinition"] }) {
  if (definition.rating) return <Badge>{`rated by ${definition.rating.system}`}</Badge>;
  return <Badge>{`${definition.aggregate}, ${definition.order === "desc" ? "highest first" : "lowest first"}`}</Badge>;
}
