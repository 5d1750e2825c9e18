"""`laurels match`: reports a match of two rated players."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from laurels.cli.options import At, BoardName, DataDir, Id, Json, parse_time
from laurels.cli.output import grouped, printable, table
from laurels.cli.session import CommandSession
from laurels.errors import InvalidInput

if TYPE_CHECKING:
    from rich.table import Table

    from laurels.ratings.match import Matched


def match(  # noqa: PLR0913  # a parameter is an option
    board: BoardName,
    first: Annotated[str, typer.Argument(metavar="A", show_default=False)],
    second: Annotated[str, typer.Argument(metavar="B", show_default=False)],
    *,
    winner: Annotated[str | None, typer.Option(metavar="MEMBER", help="Who won: A or B.")] = None,
    draw: Annotated[bool, typer.Option("--draw", help="The match was a draw.")] = False,
    at: At = None,
    id: Id = None,  # noqa: A002  # the contract's name
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Report a match of two players on a board with ratings."""
    if (winner is None) != draw:
        raise InvalidInput("name the winner with --winner, or report a draw with --draw")
    session = CommandSession(data_dir, as_json=json)
    moment = None if at is None else parse_time(at)

    matched = session.run(lambda laurels: laurels.match(board, [first, second], winner, at=moment, id=id))
    session.show(matched, _players_table(matched))


def _players_table(matched: "Matched") -> "Table":
    caption = None if matched.applied else "this id was reported before; nothing changed"
    picture = table("player", ">rating", ">change", ">rank", ">games", caption=caption)
    for player in matched.players:
        rank = "" if player.rank is None else grouped(player.rank)
        games = f"{grouped(player.games)}{' provisional' if player.provisional else ''}"
        picture.add_row(
            Text(printable(player.member)), f"{player.rating:,.1f}", f"{player.change:+,.1f}", rank, games
        )
    return picture
