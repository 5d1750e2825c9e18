"""`laurels erase`: a member out of everything that a project keeps."""

from typing import TYPE_CHECKING, Annotated

import typer

from laurels.cli.options import DataDir, Json, Member
from laurels.cli.output import grouped
from laurels.cli.session import Session

if TYPE_CHECKING:
    from laurels.history.erase import Erased
    from laurels.laurels import Laurels


def erase(
    project: Annotated[str, typer.Argument(metavar="PROJECT", show_default=False)],
    member: Member,
    *,
    board: Annotated[str | None, typer.Option(metavar="BOARD", help="Only in this board.")] = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Erase a member everywhere, for good."""
    session = Session(data_dir, as_json=json)

    async def work(laurels: "Laurels") -> "Erased":
        with session.output.working("Erasing"):
            return await laurels.erase(project, member, board=board)

    erased = session.run(work)
    session.show(
        erased,
        f"erased from {grouped(erased.boards)} boards: {grouped(erased.windows)} live windows, "
        f"{grouped(erased.rows)} rows of the archive",
    )
