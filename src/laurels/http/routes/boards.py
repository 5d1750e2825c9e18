"""Boards: defined, read, listed and dropped."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Depends, Path, Query, Request, Response
from pydantic import BaseModel

from laurels.access.store.keys import EVERY_PROJECT, Scope
from laurels.boards.definition import BoardDefinition, Owner, StoredBoard, parse_definition
from laurels.errors import Forbidden, NotFound
from laurels.http import body
from laurels.http.authentication import Call, admit, identify
from laurels.http.openapi import own_name, problem_answers
from laurels.http.parameters import ConsentParameters, NoParameters, query

router = APIRouter(tags=["boards"], generate_unique_id_function=own_name)

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


class Board(BaseModel):
    """A board, and its definition in full."""

    project: str
    board: str
    version: int
    created_at: datetime
    updated_at: datetime
    definition: BoardDefinition
    owner: Owner | None
    """The flow that alone writes to the board; null for a board of the project's own."""


class Boards(BaseModel):
    """The boards of a project, by name."""

    project: str
    boards: list[Board]


class Projects(BaseModel):
    """The projects that have boards and that the key may see, by name."""

    projects: list[str]


ProjectName = Annotated[str, Path(description="A tenant.", examples=["acme"])]
BoardName = Annotated[str, Path(description="A ranking of the project.", examples=["arcade"])]


async def _anybody(request: Request) -> Call:
    call = await identify(request)
    call.principal.check_scope("read")
    query(request, NoParameters)
    return call


def _for_project(scope: Scope) -> Callable[..., Awaitable[Call]]:
    async def admitted(request: Request, project: ProjectName) -> Call:  # noqa: ARG001  # for the document
        call = await admit(request, scope)
        query(request, NoParameters)
        return call

    return admitted


def for_board(
    scope: Scope, parameters: type[msgspec.Struct] = NoParameters
) -> Callable[..., Awaitable[Call]]:
    async def admitted(request: Request, project: ProjectName, board: BoardName) -> Call:  # noqa: ARG001  # as above
        call = await admit(request, scope)
        query(request, parameters)
        return call

    return admitted


def _shown(example: object) -> dict[str, Any]:
    return {"content": {"application/json": {"example": example}}}


def definition_taken(example: object) -> dict[str, Any]:
    """How an operation that takes a definition is described."""
    schema = {"$ref": "#/components/schemas/BoardDefinition"}
    content = {body.JSON: {"schema": schema, "example": example}}
    return {"requestBody": {"required": True, "content": content}}


@router.get(
    "/v1/projects",
    summary="List the projects",
    responses={200: _shown({"projects": ["acme"]}), **problem_answers(401, 403, 422, 429, 503)},
)
async def list_projects(call: Annotated[Call, Depends(_anybody)]) -> Projects:
    """Those that have boards and that the key may see.

    Needs the scope `read`.
    """
    projects = await call.laurels.store.projects()
    return Projects(projects=[project for project in projects if call.principal.may_see(project)])


@router.get(
    "/v1/projects/{project:segment}/boards",
    summary="List the boards of a project",
    responses={
        200: _shown({"project": "acme", "boards": [_BOARD]}),
        **problem_answers(401, 403, 422, 429, 503),
    },
)
async def list_boards(call: Annotated[Call, Depends(_for_project("read"))]) -> Boards:
    """By name, each with its definition in full.

    Needs the scope `read`.
    """
    boards = await call.laurels.store.boards(call.project)
    return Boards(project=call.project, boards=[_board(stored) for stored in boards])


@router.put(
    "/v1/projects/{project:segment}/boards/{board:segment}",
    summary="Define a board",
    responses={
        200: {"description": "The board was there; it is now as defined."} | _shown(_BOARD),
        201: {"description": "The board is new.", "model": Board} | _shown(_BOARD),
        **problem_answers(400, 401, 403, 409, 413, 415, 422, 429, 503),
    },
    openapi_extra=definition_taken(_DEFINITION),
)
async def define_board(
    call: Annotated[Call, Depends(for_board("admin", ConsentParameters))],
    response: Response,
    allow_drop: Annotated[
        str | None,
        Query(
            description="The windows that may lose entries or snapshots, with commas between.",
            examples=["weekly,monthly"],
        ),
    ] = None,
) -> Board:
    """Creates the board, or changes it. What is left out has its default.

    On a board that holds entries, what they are stored by cannot change: 409 says what to do instead. What
    would drop entries or snapshots is 409 `/problems/drop-not-allowed` with `drops`, until each of these
    windows is named in `allow_drop`. To feed a board of another project, or to name keys in Valkey (`keys`),
    takes a key for every project.

    Needs the scope `admin`.
    """
    definition = parse_definition(await body.read_json(call.request, _anything))
    await check_reach(call, definition)
    allowed = () if allow_drop is None else allow_drop
    stored = await call.laurels.define(call.board, definition, allow_drop=allowed)
    response.status_code = 201 if stored.created else 200
    return _board(stored)


@router.get(
    "/v1/projects/{project:segment}/boards/{board:segment}",
    summary="Read a board",
    responses={200: _shown(_BOARD), **problem_answers(401, 403, 404, 422, 429, 503)},
)
async def read_board(call: Annotated[Call, Depends(for_board("read"))]) -> Board:
    """With its definition in full.

    Needs the scope `read`.
    """
    stored = await call.laurels.store.get(call.project, call.name)
    if stored is None:
        raise NotFound(f"there is no board {call.board}")
    return _board(stored)


@router.delete(
    "/v1/projects/{project:segment}/boards/{board:segment}",
    summary="Drop a board",
    status_code=204,
    responses=problem_answers(401, 403, 404, 409, 422, 429, 503),
)
async def drop_board(
    call: Annotated[Call, Depends(for_board("admin", ConsentParameters))],
    allow_drop: Annotated[
        str | None,
        Query(
            description="`all` drops whatever the board holds; names of windows allow them alone.",
            examples=["all"],
        ),
    ] = None,
) -> None:
    """With everything that it holds. A board that holds entries, ratings or snapshots is 409
    `/problems/drop-not-allowed` with `drops`, unless `allow_drop` is `all`.

    Needs the scope `admin`.
    """
    await call.laurels.drop(call.board, allow_drop=() if allow_drop is None else allow_drop)


async def check_reach(call: Call, definition: BoardDefinition) -> None:
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


def _board(stored: StoredBoard) -> Board:
    return Board(
        project=stored.project,
        board=stored.board,
        version=stored.version,
        created_at=stored.created_at,
        updated_at=stored.updated_at,
        definition=stored.definition,
        owner=stored.owner,
    )
