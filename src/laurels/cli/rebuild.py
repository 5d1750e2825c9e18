"""`laurels rebuild`: rebuilds boards from their journals, or compares them."""

from typing import TYPE_CHECKING, Annotated

import typer

from laurels.cli.options import DataDir, Json
from laurels.cli.output import grouped, printable, table
from laurels.cli.session import CommandSession
from laurels.errors import Conflict, InvalidInput

if TYPE_CHECKING:
    from laurels.engine import Laurels
    from laurels.journal.rebuild import RebuildReport


def rebuild(  # noqa: PLR0913  # each is an option of the command
    board: Annotated[str | None, typer.Argument(metavar="PROJECT/BOARD", show_default=False)] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="Every board that has a journal.")] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Only compare the board with its journal.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Rebuild even if that loses entries that the journal lacks.")
    ] = False,
    data_dir: DataDir = None,
    json: Json = False,
) -> int:
    """Rebuild a board from its journal, or compare them."""
    if (board is None) != every:
        raise InvalidInput("name a board as PROJECT/BOARD, or add --all")
    session = CommandSession(data_dir, as_json=json)

    async def work(laurels: "Laurels") -> tuple[list["RebuildReport"], list[str]]:
        done: list[RebuildReport] = []
        left: list[str] = []
        for name in [board] if board else await _with_journal(laurels):
            doing = f"{'Comparing' if verify else 'Rebuilding'} {name}"
            with session.output.counting(doing) as progress:
                try:
                    if verify:
                        done.append(await laurels.verify(name, progress))
                    else:
                        done.append(await laurels.rebuild(name, progress, force=force))
                except Conflict as error:
                    if not every:
                        raise
                    left.append(error.detail)
        return done, left

    done, left = session.run(work)
    picture = table("board", ">rows", ">windows", ">entries", "journal from", "up to", ">different")
    for each in done:
        picture.add_row(
            each.board,
            grouped(each.rows),
            grouped(each.windows),
            grouped(each.entries),
            each.begins.isoformat(timespec="seconds") if each.begins else "",
            each.watermark.isoformat(timespec="milliseconds") if each.watermark else "",
            grouped(each.different) if verify else "",
        )
    session.show({"boards": done, "left": left}, picture)
    if not json:
        for line in [*left, *(each for one in done for each in one.differences)]:
            session.output.console.print(printable(line), soft_wrap=True, markup=False)
    return int(bool(left) or any(each.different for each in done))


async def _with_journal(laurels: "Laurels") -> list[str]:
    return [
        f"{stored.project}/{stored.board}"
        for project in await laurels.store.projects()
        for stored in await laurels.store.boards(project)
        if stored.definition.archive.journal
    ]
