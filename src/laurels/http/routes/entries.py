"""Entries: pages of them, one member's standing and neighbourhood, friends, and who leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from starlette.responses import Response

from laurels.access import signatures
from laurels.errors import Forbidden, NotFound, OutcomeUnknown
from laurels.http import body, idempotency_key
from laurels.http.durability import DOCUMENTED, durability_of
from laurels.http.encoding import answer, cached_answer
from laurels.http.idempotency_key import answer_once
from laurels.http.operation import Body, Operations
from laurels.http.parameters import AroundParameters, NoParameters, PageParameters, WindowParameters
from laurels.scores.queries import AMONG_LIMIT
from laurels.scores.results import Among, Page, Standing
from laurels.scores.submission import MetadataSet

if TYPE_CHECKING:
    from laurels.http.authentication import Call

operations = Operations("entries")


class Members(msgspec.Struct, forbid_unknown_fields=True):
    """Who is to be ranked among themselves."""

    members: Annotated[list[str], msgspec.Meta(max_length=AMONG_LIMIT)]


class NewMetadata(msgspec.Struct, forbid_unknown_fields=True):
    """What a member's entries are to have; null for no metadata."""

    metadata: dict[str, Any] | None
    id: str | None = None


_members = msgspec.json.Decoder(Members)
_new_metadata = msgspec.json.Decoder(NewMetadata)

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


@operations.add(
    "PATCH",
    "/entries/{member:member}",
    "submit",
    WindowParameters,
    body=Body(NewMetadata, {"metadata": {"level": 8}}),
    answer=MetadataSet,
    example={"member": "ada", "entries": 4, "applied": True, "id": "~YmTlp2hAyYd2xkGXiXXz1A.0"},
    headers={**signatures.DOCUMENTED, **DOCUMENTED, **idempotency_key.DOCUMENTED},
    most_bytes=body.BODY_BYTES,
    problems=(400, 408, 409, 413, 415),
)
async def set_metadata(call: Call, asked: WindowParameters) -> Response:
    """Set a member's metadata.

    Replaces the metadata of the member's entries, without a score; null removes it. By default in every live
    window and group; `period` and `slot` name one window, `group` one group. `entries` says how many there
    were. `applied` is false when the id was seen before. Entries of rolling windows carry no metadata.
    """
    player = call.principal.player
    if player and player.member != _member(call):
        raise Forbidden("member: is not the player of this token, who may change nobody else's metadata")
    return await answer_once(
        call, lambda sent: body.decode(sent, _new_metadata), lambda given: _set_metadata(call, asked, given)
    )


async def _set_metadata(call: Call, asked: WindowParameters, given: NewMetadata) -> Response:
    player, given_id = call.principal.player, given.id
    own_id = player.own_id(given_id) if player and given_id is not None else given_id
    try:
        told = await call.laurels.set_metadata(
            call.board,
            _member(call),
            given.metadata,
            id=own_id,
            durability=durability_of(call.request),
            **asked.where(),
        )
    except OutcomeUnknown as error:
        raise OutcomeUnknown(error.detail, given_id or error.retry_with) from error
    return await answer(call, msgspec.structs.replace(told, id=given_id or told.id))


def _member(call: Call) -> str:
    return call.request.path_params["member"]
