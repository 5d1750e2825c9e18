"""Boards: defined, previewed, read, listed and dropped."""

from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from starlette.responses import Response

from laurels.access.store.api_keys import EVERY_PROJECT
from laurels.boards.definition import BoardDefinition, Owner, StoredBoard, parse_definition
from laurels.boards.preview import Preview
from laurels.errors import Forbidden, NotFound
from laurels.http import body
from laurels.http.authentication import Call, admit_anybody
from laurels.http.encoding import JsonResponse, encode
from laurels.http.operation import BOARD, PROJECT, Body, Routes
from laurels.moments import Timestamp

lists = Routes("boards", admit_anybody)
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
    """A board, and its definition in full."""

    project: str
    board: str
    version: int
    created_at: Timestamp
    updated_at: Timestamp
    definition: BoardDefinition
    owner: Owner | None
    """The flow that alone writes to the board; null for a board of the project's own."""


class Boards(Struct, frozen=True):
    """The boards of a project, by name."""

    project: str
    boards: list[BoardAnswer]


class Projects(Struct, frozen=True):
    """The projects that have boards and that the key may see, by name."""

    projects: list[str]


class DefineParameters(Struct, forbid_unknown_fields=True):
    allow_drop: Annotated[
        str | None,
        Meta(
            description="The windows that may lose entries or snapshots, with commas between.",
            examples=["weekly,monthly"],
        ),
    ] = None


class DropParameters(Struct, forbid_unknown_fields=True):
    allow_drop: Annotated[
        str | None,
        Meta(
            description="`all` drops whatever the board holds; names of windows allow them alone.",
            examples=["all"],
        ),
    ] = None


def _consent(given: str | None) -> str | tuple[()]:
    """An empty `allow_drop=` names no window and is refused; leaving it out allows no drop."""
    return () if given is None else given


def decode_definition(_: Call, sent: bytes) -> BoardDefinition:
    return parse_definition(body.decode(sent, _anything))


@lists.get("/v1/projects", scope="read", example={"projects": ["acme"]})
async def list_projects(call: Call) -> Projects:
    """List the projects.

    Those that have boards and that the key may see.
    """
    projects = await call.laurels.store.projects()
    return Projects([project for project in projects if call.principal.may_see(project)])


@routes.get(f"{PROJECT}/boards", scope="read", example={"project": "acme", "boards": [_BOARD]})
async def list_boards(call: Call) -> Boards:
    """List the boards of a project.

    By name, each with its definition in full.
    """
    boards = await call.laurels.store.boards(call.project)
    return Boards(call.project, [_answer(stored) for stored in boards])


@routes.put(
    BOARD,
    scope="admin",
    body=Body(_DEFINITION),
    decode=decode_definition,
    answer=BoardAnswer,
    example=_BOARD,
    status=(200, 201),
    responses={
        200: {"description": "The board was there; it is now as defined."},
        201: {"description": "The board is new."},
    },
    problems=(409,),
)
async def define_board(call: Call, query: DefineParameters, given: BoardDefinition) -> Response:
    """Define a board.

    Creates the board, or changes it. What is left out has its default.

    On a board that holds entries, what they are stored by cannot change: 409 says what to do instead. What
    would drop entries or snapshots is 409 `/problems/drop-not-allowed` with `drops`, until each of these
    windows is named in `allow_drop`. To feed a board of another project, or to name keys in Valkey (`keys`),
    takes a key for every project.
    """
    await _check_reach(call, given)
    stored = await call.laurels.define(call.board, given, allow_drop=_consent(query.allow_drop))
    return JsonResponse(encode(_answer(stored)), status=201 if stored.created else 200)


@routes.get(BOARD, scope="read", example=_BOARD, problems=(404,))
async def read_board(call: Call) -> BoardAnswer:
    """Read a board.

    With its definition in full.
    """
    stored = await call.laurels.store.get(call.project, call.name)
    if stored is None:
        raise NotFound(f"there is no board {call.board}")
    return _answer(stored)


@routes.delete(BOARD, scope="admin", problems=(404, 409))
async def drop_board(call: Call, query: DropParameters) -> None:
    """Drop a board.

    With everything that it holds. A board that holds entries, ratings or snapshots is 409
    `/problems/drop-not-allowed` with `drops`, unless `allow_drop` is `all`.
    """
    await call.laurels.drop(call.board, allow_drop=_consent(query.allow_drop))


@routes.post(
    f"{BOARD}/preview", scope="admin", body=Body(_PREVIEWED), decode=decode_definition, example=_PREVIEW
)
async def preview_board(call: Call, given: BoardDefinition) -> Preview:
    """Preview a board.

    What the definition would do; nothing is changed. A wrong definition is refused as `PUT` refuses it.
    """
    await _check_reach(call, given)
    return await call.laurels.preview(call.board, given)


def _answer(stored: StoredBoard) -> BoardAnswer:
    return msgspec.convert(stored, BoardAnswer, from_attributes=True)


async def _check_reach(call: Call, definition: BoardDefinition) -> None:
    """A key of one project adds no feed into another's and names no keys; what the board has may stay."""
    beyond = [feed for feed in definition.feeds if not call.principal.may_see(feed.partition("/")[0])]
    if not beyond and (definition.keys is None or call.principal.may_see(EVERY_PROJECT)):
        return
    stored = await call.laurels.store.get(call.project, call.name)
    for feed in beyond:
        if stored is None or feed not in stored.definition.feeds:
            raise Forbidden(f"feeds: {feed} is of another project, which takes a key for {EVERY_PROJECT}")
    if definition.keys is None or call.principal.may_see(EVERY_PROJECT):
        return
    if stored is None or _named_keys(stored.definition) != _named_keys(definition):
        raise Forbidden(
            f"keys: all projects share the keys in Valkey, so templates take a key for {EVERY_PROJECT}; "
            "leave `keys` out, or define the board with such a key"
        )


def _named_keys(definition: BoardDefinition) -> tuple[object, ...]:
    """What decides which keys the templates make, and whether another program's are taken over."""
    periods = {window.label: (window.period, window.seconds) for window in definition.windows}
    return definition.keys, definition.adopt, definition.groups, periods
