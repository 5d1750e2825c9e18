/** `/boards`: all projects; `/boards/PROJECT`: its boards; `/boards/PROJECT/BOARD?…`: a view of one. */
import type { PageProps } from "../../app/App";
import { WithKey } from "../../app/Gate";
import { BoardPage } from "./BoardPage";
import { Directory } from "./Directory";

export default function Boards({ path: [project = "", board = ""] }: PageProps) {
  return <WithKey>{board ? <BoardPage key={`${project}/${board}`} project={project} board={board} /> : <Directory project={project} />}</WithKey>;
}
