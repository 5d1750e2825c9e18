"""`laurels erase`: removes a member from everything that a project keeps."""

from typing import TYPE_CHECKING, Annotated

import typer

from laurels.cli.confirmation import require_typed
from laurels.cli.options import DataDir, Json, Member
from laurels.cli.output import grouped, printable
from laurels.cli.session import CommandSession

if TYPE_CHECKING:
    from laurels.engine import Laurels
    from laurels.history.records import Erased


def erase(  # noqa: PLR0913  # a parameter is an option
    project: Annotated[str, typer.Argument(metavar="PROJECT", show_default=False)],
    member: Member,
    *,
    board: Annotated[str | None, typer.Option(metavar="BOARD", help="Only from this board.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Erase a member permanently from every board of a project. Asks for confirmation first."""
    where = f"{project}/{board}" if board else f"every board of {project}"
    require_typed(f"Erasing {printable(member)} from {where}", member, yes=yes)
    session = CommandSession(data_dir, as_json=json)

    async def work(laurels: "Laurels") -> "Erased":
        with session.output.working("Erasing"):
            return await laurels.erase(project, member, board=board)

    erased = session.run(work)
    session.show(
        erased,
        f"erased from {grouped(erased.boards)} boards: {grouped(erased.windows)} live windows, "
        f"{grouped(erased.rows)} rows of the archive",
    )
