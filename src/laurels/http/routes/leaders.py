"""The interface of the Leaders service to the same boards (docs/reference/leaders.md)."""

from dataclasses import replace
from typing import Annotated, Literal
from urllib.parse import unquote_to_bytes

import msgspec
from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from laurels.access import signatures
from laurels.boards.leaders import OPERATIONS, LeadersBoard
from laurels.boards.ordering import number_in, parse_number
from laurels.boards.windows import RANGE_CODES, Slot
from laurels.errors import Conflict, InvalidInput, NotFound
from laurels.http import body
from laurels.http.authentication import Call, admit, admit_any_project
from laurels.http.encoding import JsonResponse, encode
from laurels.http.idempotency_key import Fingerprint, claim, key_of, replayed
from laurels.http.openapi_defaults import PATH
from laurels.http.operation import Body, Operation, Routes
from laurels.http.parameters import parse_pairs
from laurels.moments import datetime_of
from laurels.scores.idempotency import FIELD
from laurels.scores.page_query import PAGE_LIMIT
from laurels.scores.queries import AMONG_LIMIT
from laurels.scores.submission import check_member

FORM = "application/x-www-form-urlencoded"


RangeCode = Annotated[str, Meta(extra_json_schema={"enum": list(RANGE_CODES)})]


class Games(Struct, frozen=True):
    """The games that have boards and that the key may see, sorted by name."""

    games: list[str]


class Ranges(Struct, frozen=True):
    """A board with the ranges that have values."""

    board: str
    ranges: list[RangeCode]


class LeadersBoards(Struct, frozen=True):
    """The boards of a game, sorted by name, each with the ranges that have values."""

    game: str
    boards: list[Ranges]


class LeadersEntry(Struct, frozen=True):
    """A user's value in a period, and its rank."""

    rank: int
    user: str
    value: int | float


class Leaders(Struct, frozen=True):
    """A part of a period's ranking, best first."""

    game: str
    board: str
    range: str
    slot: str
    total: int
    entries: list[LeadersEntry]


class Posted(Struct, frozen=True):
    """A user's value and rank after a POST."""

    game: str
    board: str
    range: str
    slot: str
    user: str
    value: int | float
    rank: int


class LeadersParameters(Struct, forbid_unknown_fields=True):
    friends: Annotated[
        str | None,
        Meta(
            description="Only these users, ranked among themselves, separated by commas; in a name, `%` and "
            "`,` are percent-encoded once more. Default: all users.",
            examples=["ada,bob"],
        ),
    ] = None
    limit: Annotated[int, Meta(ge=1, le=PAGE_LIMIT, description="How many entries.")] = 100
    offset: Annotated[int, Meta(ge=0, le=2**53 - 1, description="How many of the best to skip.")] = 0


class Value(Struct, forbid_unknown_fields=True):
    value: int | float
    type: Literal["set", "inc"] = "set"


class FormValue(Struct, forbid_unknown_fields=True):
    """Like `Value`, with text in every field."""

    value: str
    type: Literal["set", "inc"] = "set"


_value = msgspec.json.Decoder(Value)

_WHERE = {"game": "acme", "board": "highscore", "range": "d", "slot": "20251024"}
_LEADERS = {
    **_WHERE,
    "total": 2,
    "entries": [{"rank": 1, "user": "ada", "value": 1200}, {"rank": 2, "user": "bob", "value": 800}],
}


async def _admit_to_game(request: Request, operation: Operation) -> Call:
    """Admits a request about the project with the game's name."""
    request.path_params["project"] = request.path_params["game"]
    return await admit(request, operation.required_scope)


async def _admit_to_range(request: Request, operation: Operation) -> Call:
    """Admits a request about the engine's board for the range."""
    call = await _admit_to_game(request, operation)
    return replace(call, name=_range_of(call).name)


def _range_of(call: Call) -> LeadersBoard:
    in_path = call.request.path_params
    return LeadersBoard.of(in_path["board"], in_path["range"])


GAME = "/leaders/{game:segment}"
RANGE = f"{GAME}/{{board:segment}}/{{range:segment}}"
_IN_PATH = {
    "board": {
        "description": "A board of the game: 1 to 62 of `A-Z a-z 0-9 - _ .`",
        "schema": {**PATH["board"]["schema"], "examples": ["highscore"]},
    },
    "range": {
        "description": "Daily, weekly, monthly or all time.",
        "schema": {"type": "string", "enum": list(RANGE_CODES), "examples": ["d"]},
    },
}

games = Routes("leaders", admit_any_project)
boards = Routes("leaders", _admit_to_game)
ranges = Routes("leaders", _admit_to_range, in_path=_IN_PATH)


@games.get("/leaders/games", scope="read", example={"games": ["acme"]})
async def list_games(call: Call) -> Games:
    """List the games.

    Only games that have boards and that the key may see.
    """
    projects = await call.laurels.store.projects()
    return Games([project for project in projects if call.principal.may_see(project)])


@boards.get(
    f"{GAME}/boards",
    scope="read",
    example={"game": "acme", "boards": [{"board": "highscore", "ranges": ["d", "a"]}]},
)
async def list_leaders_boards(call: Call) -> LeadersBoards:
    """List the boards of a game.

    Each with the ranges that have values.
    """
    codes: dict[str, set[str]] = {}
    for stored in await call.laurels.store.boards(call.project):
        if found := LeadersBoard.named(stored.board, stored.definition):
            codes.setdefault(found.board, set()).add(found.code)
    listed = [Ranges(board, [code for code in RANGE_CODES if code in codes[board]]) for board in codes]
    return LeadersBoards(call.project, listed)


@ranges.get(RANGE, scope="read", example=_LEADERS, problems=(404, 409))
async def read_leaders(call: Call, query: LeadersParameters) -> Leaders:
    """Read the current period.

    The best of today, this week, this month or all time, among all users or among `friends`.
    """
    of = _range_of(call)
    return await _leaders(call, of, of.current(call.laurels.clock()), query)


@ranges.get(f"{RANGE}/last", scope="read", example=_LEADERS, problems=(404, 409))
async def read_last_leaders(call: Call, query: LeadersParameters) -> Leaders:
    """Read the last period.

    The best of yesterday, last week or last month. All time has no last period: 404.
    """
    of = _range_of(call)
    slot = of.last(call.laurels.clock())
    if slot is None:
        raise NotFound("all time has no last period; ask for it without /last")
    return await _leaders(call, of, slot, query)


@ranges.post(
    f"{RANGE}/{{user:member}}",
    scope="submit",
    answer=Posted,
    example={**_WHERE, "user": "ada", "value": 1200, "rank": 1},
    body=Body({"value": 1200}, {FORM: {"value": 5, "type": "inc"}}, Value),
    headers={
        **signatures.DOCUMENTED,
        FIELD: "Identifies this request only. The same request sent again gets the same answer, with "
        "`Idempotency-Replayed: true`.",
    },
    problems=(404, 409),
)
async def post_value(call: Call, user: str) -> Response:
    """Post a user's value.

    `set` keeps the greatest value of the period, `inc` adds to it. The first POST to a range creates it.
    """
    key = key_of(call.request)
    is_form = body.media_type(call.request, body.JSON, FORM) == FORM
    decoder = body.decoder_of(call.request)
    raw = await body.read_raw(call.request)
    given = _value_in(body.decompressed(decoder, raw), is_form=is_form)
    parse_number(given.value, "value")
    check_member(user)
    of = _range_of(call)
    await _make(call, of)
    if key is None:
        return JsonResponse(encode(await _post(call, of, user, given)))
    async with claim(call, key, Fingerprint.whole(call, raw)) as claimed:
        if claimed.is_done:
            return replayed(claimed)
        claimed.answer = encode(await _post(call, of, user, given, key))
        return JsonResponse(claimed.answer)


async def _post(call: Call, of: LeadersBoard, user: str, given: Value, key: str | None = None) -> Posted:
    now, value = call.laurels.clock(), parse_number(given.value, "value")
    submitted = await call.laurels.submit(
        call.board, user, value, at=datetime_of(now), op=OPERATIONS[given.type], id=key
    )
    if submitted.score is None or submitted.rank is None:  # the id was seen in a period that is over
        raise NotFound(f"{call.board}: {user!r} has no entry in the period of that {FIELD}")
    return Posted(
        game=call.project,
        board=of.board,
        range=of.code,
        slot=of.spelled(of.current(now)),
        user=user,
        value=submitted.score,
        rank=submitted.rank,
    )


def _value_in(sent: bytes, *, is_form: bool) -> Value:
    if not is_form:
        return body.decode(sent, _value)
    form = parse_pairs(sent, FormValue, "field")
    # A plus that is not percent-encoded is a space in a form: `value=+5`, as people type it.
    return Value(number_in(form.value.strip(" "), "value"), form.type)


async def _make(call: Call, of: LeadersBoard) -> None:
    """Defines the board of the range, unless it exists or another request defines it meanwhile."""
    try:
        await _check_kind(call, of)
    except NotFound:
        try:
            await call.laurels.define(call.board, of.definition, only_new=True)
        except Conflict:
            pass
        except InvalidInput as error:
            raise Conflict(f"{call.board} cannot be created: {error.detail}") from error
        await _check_kind(call, of)


async def _check_kind(call: Call, of: LeadersBoard) -> None:
    """Raises `NotFound` if the range has no board yet, `Conflict` if its board is of another kind."""
    definition = await call.laurels.definition(call.board)
    if not of.is_like(definition):
        raise Conflict(
            f"{call.board} exists, but its definition does not fit the range {of.code} of {of.board}: "
            "choose another name, or drop the board first"
        )


async def _leaders(call: Call, of: LeadersBoard, slot: Slot, query: LeadersParameters) -> Leaders:
    await _check_kind(call, of)
    first, limit = query.offset, query.limit
    if query.friends is None:
        page = await call.laurels.page(call.board, slot=slot.text, rank=first + 1, limit=limit)
        total, entries = page.total, page.entries
    else:
        among = await call.laurels.among(call.board, _friends(query.friends), slot=slot.text)
        total, entries = among.total, among.entries[first : first + limit]
    return Leaders(
        game=call.project,
        board=of.board,
        range=of.code,
        slot=of.spelled(slot),
        total=total,
        entries=[LeadersEntry(each.rank, each.member, each.score) for each in entries],
    )


def _friends(listed: str) -> list[str]:
    try:
        friends = [unquote_to_bytes(each).decode() for each in listed.split(",")] if listed else []
        for friend in friends:
            check_member(friend)
    except (UnicodeError, InvalidInput) as error:
        why = error.detail if isinstance(error, InvalidInput) else "not UTF-8"
        raise InvalidInput.at("friends", f"must be users, separated by commas ({why})") from error
    if len(friends) > AMONG_LIMIT:
        raise InvalidInput.at("friends", f"must be at most {AMONG_LIMIT}, not {len(friends)}")
    return friends
