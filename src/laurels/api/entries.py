"""Entries: pages of them, one member's standing and neighbourhood, friends, and who leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from starlette.responses import Response

from laurels.api import body
from laurels.api.answers import answer, cached_answer
from laurels.api.durability import DOCUMENTED, durability_of
from laurels.api.operation import Body, Operations
from laurels.api.parameters import AroundParameters, NoParameters, PageParameters, WindowParameters
from laurels.boards.answers import Among, Page, Standing
from laurels.boards.ranks import AMONG_LIMIT
from laurels.errors import NotFound

if TYPE_CHECKING:
    from laurels.api.auth import Call

operations = Operations("entries")


class Members(msgspec.Struct, forbid_unknown_fields=True):
    """Who is to be ranked among themselves."""

    members: Annotated[list[str], msgspec.Meta(max_length=AMONG_LIMIT)]


_members = msgspec.json.Decoder(Members)

PAGE: Final = {
    "project": "acme",
    "board": "arcade",
    "period": "daily",
    "slot": "2025-10-24",
    "starts_at": "2025-10-24T00:00:00Z",
    "ends_at": "2025-10-25T00:00:00Z",
    "next_reset_at": "2025-10-25T00:00:00Z",
    "total": 2,
    "entries": [
        {"rank": 1, "member": "ada", "score": 1200, "metadata": {"level": 7}},
        {"rank": 2, "member": "bob", "score": 800},
    ],
    "next": None,
    "previous": None,
}


@operations.add("GET", "/entries", "read", PageParameters, answer=Page, example=PAGE)
async def read_page(call: Call, asked: PageParameters) -> Response:
    """Read a page of a window.

    From the top or the bottom; behind a `cursor`, which keeps its place when entries change; or from a rank.
    """
    return await cached_answer(
        call,
        lambda: call.laurels.page(
            call.board,
            **asked.where(),
            limit=asked.limit,
            start=asked.start,
            cursor=asked.cursor,
            rank=asked.rank,
            change=asked.change,
        ),
    )


@operations.add(
    "POST",
    "/entries/among",
    "read",
    WindowParameters,
    body=Body(Members, {"members": ["ada", "bob", "eve"]}),
    answer=Among,
    example={
        "total": 2,
        "entries": [
            {"rank": 1, "member": "ada", "score": 1200, "board_rank": 17},
            {"rank": 2, "member": "bob", "score": 800, "board_rank": 230},
        ],
        "absent": ["eve"],
    },
    problems=(400, 413, 415),
)
async def read_among(call: Call, asked: WindowParameters) -> Response:
    """Rank members among themselves.

    Friends, a team, a class: at most 1,000 members. `absent` lists those who have no entry in the window.
    """
    given = await body.read_json(call.request, _members)
    return await answer(call, await call.laurels.among(call.board, given.members, **asked.where()))


@operations.add("GET", "/entries/{member:member}/around", "read", AroundParameters, answer=Page, example=PAGE)
async def read_around(call: Call, asked: AroundParameters) -> Response:
    """Read a member's neighbourhood."""
    around = call.laurels.around
    return await cached_answer(
        call, lambda: around(call.board, _member(call), asked.above, asked.below, **asked.where())
    )


@operations.add(
    "GET",
    "/entries/{member:member}",
    "read",
    WindowParameters,
    answer=Standing,
    example={"member": "ada", "score": 1200, "rank": 1, "ordinal": 1, "percentile": 1.0, "total": 2},
)
async def read_standing(call: Call, asked: WindowParameters) -> Response:
    """Read a member's standing.

    `dense_rank` is there on boards that keep dense ranks. Slashes in a member are best sent as `%2F`.
    """
    standing = call.laurels.standing
    return await cached_answer(call, lambda: standing(call.board, _member(call), **asked.where()))


@operations.add("DELETE", "/entries/{member:member}", "admin", headers=DOCUMENTED)
async def remove_member(call: Call, _: NoParameters) -> Response:
    """Remove a member.

    Out of every live window and group of the board.
    """
    member = _member(call)
    if not await call.laurels.remove(call.board, member, durability=durability_of(call.request)):
        raise NotFound(f"{call.board}: {member!r} has no entry in any window")
    return Response(status_code=204)


def _member(call: Call) -> str:
    return call.request.path_params["member"]
