"""Defines, previews, reads, lists and drops boards."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from starlette.responses import Response

from laurels.access.store.api_keys import EVERY_PROJECT
from laurels.boards.definition import BoardDefinition, Owner, StoredBoard, parse_definition
from laurels.boards.operations import LONGEST_LIST
from laurels.boards.preview import Preview
from laurels.errors import Forbidden, NotFound
from laurels.http import body
from laurels.http.authentication import Call, admit_any_project
from laurels.http.encoding import JsonResponse, encode
from laurels.http.operation import BOARD, PROJECT, Body, Routes
from laurels.moments import Timestamp

lists = Routes("boards", admit_any_project)
routes = Routes("boards")

_anything = msgspec.json.Decoder()

_DEFINITION = {
    "windows": [{"period": "daily", "keep": 30}, {"period": "all_time"}],
    "groups": [["country"]],
}
_BOARD = {
    "project": "acme",
    "board": "arcade",
    "version": 17,
    "created_at": "2025-10-24T12:00:00Z",
    "updated_at": "2025-10-24T12:00:00Z",
    "definition": parse_definition(_DEFINITION).model_dump(mode="json"),
    "owner": None,
}
_PREVIEWED = {"windows": [{"period": "daily", "keep": 30}], "groups": [["country"]]}
_PREVIEW = {
    "definition": parse_definition(_PREVIEWED).model_dump(mode="json"),
    "is_new": False,
    "changed": ["windows"],
    "conflict": None,
    "drops": [{"window": "weekly", "entries": 150_002, "snapshots": 12}],
    "windows": [
        {
            "period": "daily",
            "slot": "2025-10-24",
            "starts_at": "2025-10-24T00:00:00Z",
            "ends_at": "2025-10-25T00:00:00Z",
            "next_slot": "2025-10-25",
            "keys": [
                {"group": "", "key": "lb:{acme/arcade}:daily:2025-10-24"},
                {"group": "country=…", "key": "lb:{acme/arcade}:daily:2025-10-24:country=…"},
            ],
        }
    ],
}


class BoardAnswer(Struct, frozen=True):
    """A board with its complete definition."""

    project: str
    board: str
    version: int
    created_at: Timestamp
    updated_at: Timestamp
    definition: BoardDefinition
    owner: Owner | None
    """What alone writes to the board: a campus or an index. Null if clients submit to it."""


class Boards(Struct, frozen=True):
    """The boards of a project, sorted by name. `next`, with a `limit`: the cursor for those after them, or
    null.
    """

    project: str
    boards: list[BoardAnswer]
    next: str | UnsetType | None = UNSET


class Projects(Struct, frozen=True):
    """The projects that have boards and that the key may see, sorted by name. `next`, with a `limit`: the
    cursor for those after them, or null.
    """

    projects: list[str]
    next: str | UnsetType | None = UNSET


class ListParameters(Struct, forbid_unknown_fields=True):
    limit: Annotated[
        Annotated[int, Meta(ge=1, le=LONGEST_LIST)] | None,
        Meta(description="How many to list; left out: all.", examples=[100]),
    ] = None
    cursor: Annotated[str | None, Meta(description="`next` of the list before.", examples=["arcade"])] = None


class DefineParameters(Struct, forbid_unknown_fields=True):
    allow_drop: Annotated[
        str | None,
        Meta(
            description="The windows that may lose entries or snapshots, separated by commas.",
            examples=["weekly,monthly"],
        ),
    ] = None


class DropParameters(Struct, forbid_unknown_fields=True):
    allow_drop: Annotated[
        str | None,
        Meta(
            description="`all`, or the windows that may be dropped, separated by commas.",
            examples=["all"],
        ),
    ] = None


def _consent(given: str | None) -> str | tuple[()]:
    """An empty `allow_drop=` names no window and is refused; leaving it out allows no drop."""
    return () if given is None else given


def decode_definition(_: Call, sent: bytes) -> BoardDefinition:
    return parse_definition(body.decode(sent, _anything))


@lists.get("/v1/projects", scope="read", example={"projects": ["acme"], "next": None})
async def list_projects(call: Call, query: ListParameters) -> Projects:
    """List the projects.

    Only projects that have boards and that the key may see.
    """
    limit, after = query.limit, query.cursor or ""
    if not call.principal.may_see(EVERY_PROJECT):
        projects = await call.laurels.store.projects()
        seen = [each for each in projects if each > after and call.principal.may_see(each)]
        return Projects(seen, None if limit else UNSET)
    projects = await call.laurels.store.projects(limit and limit + 1, after)
    return Projects(projects[:limit], _next(projects, limit))


@routes.get(f"{PROJECT}/boards", scope="read", example={"project": "acme", "boards": [_BOARD], "next": None})
async def list_boards(call: Call, query: ListParameters) -> Boards:
    """List the boards of a project.

    Sorted by name, each with its complete definition.
    """
    limit = query.limit
    boards = await call.laurels.store.boards(call.project, limit and limit + 1, query.cursor or "")
    ahead = _next([stored.board for stored in boards], limit)
    return Boards(call.project, [_answer(stored) for stored in boards[:limit]], ahead)


@routes.put(
    BOARD,
    scope="admin",
    body=Body(_DEFINITION),
    decode=decode_definition,
    answer=BoardAnswer,
    example=_BOARD,
    status=(200, 201),
    responses={
        200: {"description": "The board existed, and now has this definition."},
        201: {"description": "The board was created."},
    },
    problems=(409,),
)
async def define_board(call: Call, query: DefineParameters, given: BoardDefinition) -> Response:
    """Define a board.

    Creates the board or changes its definition. Fields that are left out get their defaults.

    How existing entries are stored cannot change: 409 says what to do instead. A change that would drop
    entries or snapshots is 409 `/problems/drop-not-allowed` with `drops`, unless `allow_drop` names each of
    these windows. Feeding a board of another project and naming keys in Valkey (`keys`) need a key for every
    project.
    """
    await check_reach(call, call.name, given)
    stored = await call.laurels.define(call.board, given, allow_drop=_consent(query.allow_drop))
    return JsonResponse(encode(_answer(stored)), status=201 if stored.created else 200)


@routes.get(BOARD, scope="read", example=_BOARD, problems=(404,))
async def read_board(call: Call) -> BoardAnswer:
    """Read a board.

    With its complete definition.
    """
    stored = await call.laurels.store.get(call.project, call.name)
    if stored is None:
        raise NotFound(f"there is no board {call.board}")
    return _answer(stored)


@routes.delete(BOARD, scope="admin", problems=(404, 409))
async def drop_board(call: Call, query: DropParameters) -> None:
    """Drop a board.

    Deletes the board with everything in it. If it holds entries, ratings or snapshots, the answer is 409
    `/problems/drop-not-allowed` with `drops`, unless `allow_drop` is `all`.
    """
    await call.laurels.drop(call.board, allow_drop=_consent(query.allow_drop))


@routes.post(
    f"{BOARD}/preview", scope="admin", body=Body(_PREVIEWED), decode=decode_definition, example=_PREVIEW
)
async def preview_board(call: Call, given: BoardDefinition) -> Preview:
    """Preview a board.

    Shows what the definition would do, and changes nothing. `PUT` and this refuse the same definitions.
    """
    await check_reach(call, call.name, given)
    return await call.laurels.preview(call.board, given)


def _next(names: list[str], limit: int | None) -> str | UnsetType | None:
    """The cursor after a list, of which one name more was read."""
    if limit is None:
        return UNSET
    return names[limit - 1] if len(names) > limit else None


def _answer(stored: StoredBoard) -> BoardAnswer:
    return msgspec.convert(stored, BoardAnswer, from_attributes=True)


async def check_reach(call: Call, board: str, definition: BoardDefinition) -> None:
    """Raises `Forbidden` if a key of one project adds feeds to other projects or changes the key names."""
    beyond = [feed for feed in definition.feeds if not call.principal.may_see(feed.partition("/")[0])]
    if not beyond and (definition.keys is None or call.principal.may_see(EVERY_PROJECT)):
        return
    stored = await call.laurels.store.get(call.project, board)
    for feed in beyond:
        if stored is None or feed not in stored.definition.feeds:
            raise Forbidden(f"feeds: {feed} is in another project; this needs a key for {EVERY_PROJECT}")
    if definition.keys is None or call.principal.may_see(EVERY_PROJECT):
        return
    if stored is None or _named_keys(stored.definition) != _named_keys(definition):
        raise Forbidden(
            f"keys: all projects share the keys in Valkey, so templates need a key for {EVERY_PROJECT}; "
            "leave `keys` out, or define the board with such a key"
        )


def _named_keys(definition: BoardDefinition) -> tuple[object, ...]:
    """The parts of a definition that decide which keys it names, and whether it adopts existing ones."""
    periods = {window.label: (window.period, window.seconds) for window in definition.windows}
    return definition.keys, definition.adopt, definition.groups, periods
