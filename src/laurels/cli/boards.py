"""`laurels submit`, `laurels top` and `laurels rank`."""

from contextlib import aclosing, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group as Stacked
from rich.live import Live
from rich.table import Table
from rich.text import Text

from laurels.boards.ordering import number_in
from laurels.cli.options import At, BoardName, DataDir, Group, Id, Json, Member, Period, Slot, parse_time
from laurels.cli.output import duration, grouped, printable, table
from laurels.cli.session import CommandSession
from laurels.errors import InvalidInput, Unavailable

if TYPE_CHECKING:
    from laurels import Laurels
    from laurels.http.encoding import Answer
    from laurels.scores.results import Page, Standing
    from laurels.scores.submission import Submitted

NEIGHBOURS = 3


def submit(  # noqa: PLR0913  # a parameter is an option
    board: BoardName,
    member: Member,
    score: Annotated[str, typer.Argument(metavar="SCORE", show_default=False)],
    *,
    group: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A group of the member. Can be repeated.")
    ] = None,
    at: At = None,
    id: Id = None,  # noqa: A002  # the contract's name
    op: Annotated[
        str | None, typer.Option(metavar="OP", help="best, last, first or sum, if the board allows it.")
    ] = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Submit a score for a member."""
    session = CommandSession(data_dir, as_json=json)
    groups = dict(map(_pair, group)) if group else None
    moment = None if at is None else parse_time(at)
    value = number_in(score)

    async def work(laurels: "Laurels") -> "tuple[Submitted, object]":
        answer = await laurels.submit(board, member, value, at=moment, groups=groups, id=id, op=op)
        return answer, await _document(laurels, board, answer)

    answer, document = session.run(work)
    session.show(document, _submitted_line(answer))


def top(  # noqa: PLR0913  # a parameter is an option
    board: BoardName,
    *,
    period: Period = None,
    slot: Slot = None,
    group: Group = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="How many entries.")] = 10,
    watch: Annotated[
        bool, typer.Option("--watch", help="Show changes as they happen, until Ctrl-C.")
    ] = False,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Show the best entries of a board."""
    session = CommandSession(data_dir, as_json=json)

    async def ask(laurels: "Laurels") -> "Page":
        return await laurels.page(board, period=period, slot=slot, group=group, limit=limit)

    async def show(laurels: "Laurels") -> None:
        page = await ask(laurels)
        session.show(await _document(laurels, board, page), _page_table(page, group))

    async def keep_showing(laurels: "Laurels") -> None:
        page = await ask(laurels)
        # Redraws once a second for the time left, and at once after a change.
        with Live(
            console=session.output.console,
            refresh_per_second=1,
            get_renderable=lambda: _page_table(page, group),
        ) as live:
            where: dict[str, Any] = {"period": period, "slot": slot, "group": group}
            async with aclosing(laurels.watch(board, **where, limit=limit)) as updates:
                async for _ in updates:
                    with suppress(Unavailable):  # another update will follow
                        page = await ask(laurels)
                    live.refresh()

    if watch and json:
        raise InvalidInput("--watch does not go with --json: run the command again instead")
    if watch and not session.output.console.is_terminal:
        raise InvalidInput("--watch needs a terminal: without one, run the command again instead")
    session.run(keep_showing if watch else show)


def rank(  # noqa: PLR0913  # a parameter is an option
    board: BoardName,
    member: Member,
    *,
    period: Period = None,
    slot: Slot = None,
    group: Group = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Show a member's rank, and the members just above and below."""
    session = CommandSession(data_dir, as_json=json)

    async def show(laurels: "Laurels") -> None:
        where: dict[str, Any] = {"period": period, "slot": slot, "group": group}
        standing = await laurels.standing(board, member, **where)
        around = await laurels.around(board, member, above=NEIGHBOURS, below=NEIGHBOURS, **where)
        picture = Stacked(_standing_line(standing), _page_table(around, group, member))
        session.show(await _document(laurels, board, standing), picture)

    session.run(show)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise InvalidInput.at("--group", f"write it as NAME=VALUE, not {text!r}")
    return name, value


def _submitted_line(answer: "Submitted") -> Text:
    if answer.score is None:
        return Text(f"{printable(answer.member)}: counted in a window that has ended")
    line = Text.assemble((printable(answer.member), "bold"), f" has {grouped(answer.score)}")
    if answer.rank is not None:
        line.append(f", rank {grouped(answer.rank)}")
    if answer.previous_rank is not None and answer.previous_rank != answer.rank:
        line.append(f" (was {grouped(answer.previous_rank)})")
    if not answer.applied:
        line.append("; this score changed nothing", "dim")
    return line


def _standing_line(standing: "Standing") -> Text:
    return Text.assemble(
        (printable(standing.member), "bold"),
        f" is {grouped(standing.rank)} of {grouped(standing.total)} with {grouped(standing.score)}, "
        f"no worse than {standing.percentile:.1%} of the entries",
    )


def _page_table(page: "Page", group: str | None, chosen: str | None = None) -> Table:
    title = " · ".join(
        filter(None, (f"{page.project}/{page.board}", f"{page.period} {page.slot}".strip(), group))
    )
    picture = table(">rank", "member", ">score", title=printable(title), caption=_caption(page))
    for entry in page.entries:
        style = "bold reverse" if entry.member == chosen else "bold" if entry.rank == 1 else ""
        picture.add_row(grouped(entry.rank), Text(printable(entry.member)), grouped(entry.score), style=style)
    return picture


def _caption(page: "Page") -> str:
    entries = "1 entry" if page.total == 1 else f"{grouped(page.total)} entries"
    if page.next_reset_at is None:
        return entries
    left = (page.next_reset_at - datetime.now(UTC)).total_seconds()
    ended = page.ends_at is not None and page.ends_at < page.next_reset_at
    return f"{entries} · ended" if ended else f"{entries} · resets in {duration(left)}"


async def _document(laurels: "Laurels", board: str, answer: "Answer") -> "Answer":
    """The answer as the API encodes it."""
    from laurels.http.encoding import with_exact_scores  # noqa: PLC0415  # Pydantic, which --help saves

    definition = await laurels.definition(board)
    return with_exact_scores(answer) if definition.score == "int64" else answer
