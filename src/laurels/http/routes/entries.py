"""Entries: pages, a member's standing, neighbourhood and history, friends, metadata and removal."""

from typing import Annotated, Any, Final

import msgspec
from msgspec import structs

from laurels.access import signatures
from laurels.errors import Forbidden, NotFound, OutcomeUnknown
from laurels.history.records import History
from laurels.http import body, idempotency_key
from laurels.http.authentication import Call, check_player_writes
from laurels.http.durability import DOCUMENTED, durability_of
from laurels.http.operation import BOARD, Body, Routes
from laurels.http.parameters import AroundParameters, HistoryParameters
from laurels.scores.page_query import EntriesQuery, PageQuery, WindowQuery
from laurels.scores.queries import AMONG_LIMIT
from laurels.scores.results import Among, Page, Standing
from laurels.scores.submission import MetadataSet

routes = Routes("entries")

MEMBER = f"{BOARD}/entries/{{member:member}}"


class Members(msgspec.Struct, forbid_unknown_fields=True):
    """The members to rank among themselves."""

    members: Annotated[list[str], msgspec.Meta(max_length=AMONG_LIMIT)]


class NewMetadata(msgspec.Struct, forbid_unknown_fields=True):
    """The new metadata of a member's entries; null removes it."""

    metadata: dict[str, Any] | None
    id: str | None = None


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


@routes.get(
    f"{MEMBER}/history",
    scope="read",
    cached=True,
    problems=(404,),
    example={
        "member": "ada",
        "period": "daily",
        "windows": [
            {
                "slot": "2025-10-23",
                "starts_at": "2025-10-23T00:00:00Z",
                "ends_at": "2025-10-24T00:00:00Z",
                "score": 1200,
                "rank": 1,
                "total": 250,
                "source": "snapshot",
            }
        ],
        "next": None,
    },
)
async def read_history(call: Call, member: str, query: HistoryParameters) -> History:
    """Read a member's standings in ended windows, newest first.

    `source` says where a standing comes from: the live window, its snapshot, or a recount of the journal. An
    answer may have fewer windows than `limit`, even none, and still have a `next`.
    """
    return await call.laurels.history(call.board, member, **structs.asdict(query))


@routes.get(f"{BOARD}/entries", scope="read", cached=True, example=PAGE)
async def read_page(call: Call, query: PageQuery) -> Page:
    """Read a page of a window.

    From the top or the bottom, from a rank, or after a `cursor`, which keeps its place when entries change.
    """
    return await call.laurels.all_windows.page(call.ref, query)


@routes.post(
    f"{BOARD}/entries/among",
    scope="read",
    body=Body({"members": ["ada", "bob", "eve"]}),
    example={
        "total": 2,
        "entries": [
            {"rank": 1, "member": "ada", "score": 1200, "board_rank": 17},
            {"rank": 2, "member": "bob", "score": 800, "board_rank": 230},
        ],
        "absent": ["eve"],
    },
)
async def read_among(call: Call, query: EntriesQuery, given: Members) -> Among:
    """Rank members among themselves.

    Friends, a team, a class: at most 1,000 members. `absent` lists those without an entry in the window.
    """
    return await call.laurels.all_windows.among(call.ref, query, given.members)


@routes.get(f"{MEMBER}/around", scope="read", cached=True, example=PAGE)
async def read_around(call: Call, member: str, query: AroundParameters) -> Page:
    """Read a member's neighbourhood."""
    return await call.laurels.all_windows.around(call.ref, query, member, query.above, query.below)


@routes.get(
    MEMBER,
    scope="read",
    cached=True,
    shared=False,  # members who are asked for at the same time share a call already
    example={"member": "ada", "score": 1200, "rank": 1, "ordinal": 1, "percentile": 1.0, "total": 2},
)
async def read_standing(call: Call, member: str, query: EntriesQuery) -> Standing:
    """Read a member's standing.

    Boards that keep dense ranks add `dense_rank`. Send a slash in a member as `%2F`.
    """
    return await call.laurels.all_windows.standing(call.ref, query, member)


@routes.delete(MEMBER, scope="admin", headers=DOCUMENTED)
async def remove_member(call: Call, member: str) -> None:
    """Remove a member.

    Removes its entries from every live window and group of the board.
    """
    if not await call.laurels.remove(call.board, member, durability=durability_of(call.request)):
        raise NotFound(f"{call.board}: {member!r} has no entry in any window")


def _decode_metadata(call: Call, sent: bytes) -> NewMetadata:
    player = call.principal.player
    if player and player.member != call.request.path_params["member"]:
        raise Forbidden("member: is not the player of this token; players set only their own metadata")
    return body.decode(sent, _new_metadata)


@routes.patch(
    MEMBER,
    scope="submit",
    body=Body({"metadata": {"level": 8}}),
    decode=_decode_metadata,
    idempotent=True,
    takes_players=True,
    example={"member": "ada", "entries": 4, "applied": True, "id": "~YmTlp2hAyYd2xkGXiXXz1A.0"},
    headers={**signatures.DOCUMENTED, **DOCUMENTED, **idempotency_key.DOCUMENTED},
    problems=(409,),
)
async def set_metadata(call: Call, member: str, query: WindowQuery, given: NewMetadata) -> MetadataSet:
    """Set a member's metadata.

    Replaces the metadata of the member's entries, without a score; null removes it. By default in every live
    window and group; `period` and `slot` name one window, `group` one group. `entries` is the number of these
    entries. `applied` is false if the id was seen before. Entries of rolling windows have no metadata.
    """
    player, given_id = call.principal.player, given.id
    if player:
        await check_player_writes(call)
    own_id = player.own_id(given_id) if player and given_id is not None else given_id
    try:
        done = await call.laurels.set_metadata(
            call.board,
            member,
            given.metadata,
            id=own_id,
            durability=durability_of(call.request),
            **query.in_window(),
        )
    except OutcomeUnknown as error:
        raise OutcomeUnknown(error.detail, given_id or error.retry_with) from error
    return structs.replace(done, id=given_id or done.id)
