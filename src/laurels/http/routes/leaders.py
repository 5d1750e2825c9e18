"""The Leaders service: the same boards in its own words (docs/reference/leaders.md)."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal
from urllib.parse import unquote_to_bytes

import msgspec
from fastapi import APIRouter, Depends, Path, Request, Response
from msgspec import Meta, Struct
from pydantic import BaseModel

from laurels.access import signatures
from laurels.access.store.keys import Scope
from laurels.boards.leaders import OPERATIONS, LeadersBoard
from laurels.boards.ordering import number_in, parse_number
from laurels.boards.windows import RANGE_CODES, Slot
from laurels.errors import Conflict, InvalidInput, NotFound
from laurels.http import body
from laurels.http.authentication import Call, admit, identify
from laurels.http.idempotency_key import Fingerprint, claim, key_of, replayed
from laurels.http.openapi import header_parameters, own_name, problem_answers, query_parameters
from laurels.http.parameters import NoParameters, parse_pairs, query
from laurels.moments import Moment, datetime_of
from laurels.scores.idempotency import FIELD
from laurels.scores.page_query import PAGE_LIMIT
from laurels.scores.queries import AMONG_LIMIT
from laurels.scores.submission import check_member

FORM = "application/x-www-form-urlencoded"

router = APIRouter(tags=["leaders"], generate_unique_id_function=own_name)


class Games(BaseModel):
    """The games that have boards and that the key may see, by name."""

    games: list[str]


class LeadersBoards(BaseModel):
    """The boards of a game, by name, each with the ranges that were posted to."""

    class Ranges(BaseModel):
        board: str
        ranges: list[Literal["d", "w", "m", "a"]]

    game: str
    boards: list[Ranges]


class Ranked(BaseModel):
    """A user's value in a period, and the rank that it has."""

    rank: int
    user: str
    value: int | float


class Leaders(BaseModel):
    """A stretch of a period, best first."""

    game: str
    board: str
    range: str
    slot: str
    total: int
    entries: list[Ranked]


class Posted(BaseModel):
    """What a user has after a POST."""

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
            description="Only these users, ranked among themselves, with commas between; in a name, `%` and "
            "`,` are percent-encoded once more. Default: everybody.",
            examples=["ada,bob"],
        ),
    ] = None
    limit: Annotated[int, Meta(ge=1, le=PAGE_LIMIT, description="How many entries.")] = 100
    offset: Annotated[int, Meta(ge=0, le=2**53 - 1, description="How many of the best to leave out.")] = 0


class Value(Struct, forbid_unknown_fields=True):
    value: int | float
    type: Literal["set", "inc"] = "set"


class FormValue(Struct, forbid_unknown_fields=True):
    """As `Value`, where every field is text."""

    value: str
    type: Literal["set", "inc"] = "set"


_value = msgspec.json.Decoder(Value)

GameName = Annotated[str, Path(description="A project.", examples=["acme"])]
LeadersName = Annotated[
    str, Path(description="A board of the game: 1 to 62 of `A-Z a-z 0-9 - _ .`", examples=["highscore"])
]
RangeCode = Annotated[
    str,
    Path(
        description="Daily, weekly, monthly or all time.",
        examples=["d"],
        json_schema_extra={"enum": list(RANGE_CODES)},
    ),
]
User = Annotated[str, Path(description="Percent-encoded; a slash is `%2F`.", examples=["ada"])]

_PARAMETERS: dict[str, Any] = {"parameters": list(query_parameters(LeadersParameters))}
_WHERE = {"game": "acme", "board": "highscore", "range": "d", "slot": "20251024"}
_LEADERS = {
    **_WHERE,
    "total": 2,
    "entries": [{"rank": 1, "user": "ada", "value": 1200}, {"rank": 2, "user": "bob", "value": 800}],
}
_VALUE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "value": {"type": "number"},
        "type": {"enum": list(OPERATIONS), "default": "set"},
    },
    "required": ["value"],
    "additionalProperties": False,
}
_POST: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            body.JSON: {"schema": _VALUE, "example": {"value": 1200}},
            FORM: {"schema": _VALUE, "example": {"value": 5, "type": "inc"}},
        },
    },
    "parameters": header_parameters(
        {
            **signatures.DOCUMENTED,
            FIELD: "It stands for this request alone. Sent again, the request gets the same answer, with "
            "`Idempotency-Replayed: true`.",
        }
    ),
}


@dataclass(frozen=True)
class Asked:
    """A request about one range of a board, which the call names as the engine does."""

    call: Call
    of: LeadersBoard

    @property
    def now(self) -> Moment:
        return self.call.laurels.clock()

    async def check(self) -> None:
        """Raises `NotFound` for a range that nobody posted to, `Conflict` for another kind of board."""
        definition = await self.call.laurels.definition(self.call.board)
        if not self.of.is_like(definition):
            raise Conflict(
                f"{self.call.board} is a board of another shape than the range {self.of.code} of "
                f"{self.of.board}; choose another name, or drop it first"
            )


async def _anybody(request: Request) -> Call:
    call = await identify(request)
    call.principal.check_scope("read")
    query(request, NoParameters)
    return call


async def _admitted(request: Request, game: str, scope: Scope) -> Call:
    """As a request about the project is."""
    request.path_params["project"] = game
    return await admit(request, scope)


async def _for_game(request: Request, game: GameName) -> Call:
    call = await _admitted(request, game, "read")
    query(request, NoParameters)
    return call


def _for_range(scope: Scope) -> Callable[..., Awaitable[Asked]]:
    async def admitted(
        request: Request,
        game: GameName,
        board: LeadersName,
        range: RangeCode,  # noqa: A002  # its name in the path
    ) -> Asked:
        call = await _admitted(request, game, scope)
        of = LeadersBoard.of(board, range)
        return Asked(replace(call, name=of.name), of)

    return admitted


def _shown(example: object) -> dict[str, Any]:
    return {"content": {"application/json": {"example": example}}}


@router.get(
    "/leaders/games",
    summary="List the games",
    responses={200: _shown({"games": ["acme"]}), **problem_answers(401, 403, 422, 503)},
)
async def list_games(call: Annotated[Call, Depends(_anybody)]) -> Games:
    """Those that have boards and that the key may see.

    Needs the scope `read`.
    """
    projects = await call.laurels.store.projects()
    return Games(games=[project for project in projects if call.principal.may_see(project)])


@router.get(
    "/leaders/{game:segment}/boards",
    summary="List the boards of a game",
    responses={
        200: _shown({"game": "acme", "boards": [{"board": "highscore", "ranges": ["d", "a"]}]}),
        **problem_answers(401, 403, 422, 503),
    },
)
async def list_leaders_boards(call: Annotated[Call, Depends(_for_game)]) -> LeadersBoards:
    """Each with the ranges that were posted to.

    Needs the scope `read`.
    """
    codes: dict[str, set[str]] = {}
    for stored in await call.laurels.store.boards(call.project):
        if found := LeadersBoard.named(stored.board, stored.definition):
            codes.setdefault(found.board, set()).add(found.code)
    listed = [
        {"board": board, "ranges": [code for code in RANGE_CODES if code in codes[board]]} for board in codes
    ]
    return LeadersBoards.model_validate({"game": call.project, "boards": listed})


@router.get(
    "/leaders/{game:segment}/{board:segment}/{range:segment}",
    summary="Read the current period",
    responses={200: _shown(_LEADERS), **problem_answers(401, 403, 404, 409, 422, 503)},
    openapi_extra=_PARAMETERS,
)
async def read_leaders(asked: Annotated[Asked, Depends(_for_range("read"))]) -> Leaders:
    """The best of today, of this week, of this month or of all time; of everybody, or among friends.

    Needs the scope `read`.
    """
    return await _leaders(asked, asked.of.current(asked.now))


@router.get(
    "/leaders/{game:segment}/{board:segment}/{range:segment}/last",
    summary="Read the last period",
    responses={200: _shown(_LEADERS), **problem_answers(401, 403, 404, 409, 422, 503)},
    openapi_extra=_PARAMETERS,
)
async def read_last_leaders(asked: Annotated[Asked, Depends(_for_range("read"))]) -> Leaders:
    """The best of yesterday, of last week or of last month. All time has no last period: 404.

    Needs the scope `read`.
    """
    slot = asked.of.last(asked.now)
    if slot is None:
        raise NotFound("all time has no last period; ask for it without /last")
    return await _leaders(asked, slot)


@router.post(
    "/leaders/{game:segment}/{board:segment}/{range:segment}/{user:member}",
    summary="Post a user's value",
    response_model=Posted,
    responses={
        200: _shown({**_WHERE, "user": "ada", "value": 1200, "rank": 1}),
        **problem_answers(400, 401, 403, 409, 413, 415, 422, 503),
    },
    openapi_extra=_POST,
)
async def post_value(asked: Annotated[Asked, Depends(_for_range("submit"))], user: User) -> Posted | Response:
    """`set` keeps the greatest value of the period, `inc` adds to it. The first POST to a range makes it.

    Needs the scope `submit`.
    """
    call = asked.call
    query(call.request, NoParameters)
    key = key_of(call.request)
    is_form = body.media_type(call.request, body.JSON, FORM) == FORM
    decoder = body.decoder_of(call.request)
    raw = await body.read_raw(call.request)
    given = _value_in(body.decompressed(decoder, raw), is_form=is_form)
    parse_number(given.value, "value")
    check_member(user)
    await _make(asked)
    if key is None:
        return await _post(asked, user, given)
    fingerprint = Fingerprint(call)
    fingerprint.add(raw)
    async with claim(call, key, fingerprint) as claimed:
        if claimed.is_done:
            return replayed(claimed)
        posted = await _post(asked, user, given, key)
        claimed.answer = posted.model_dump_json().encode()
        return posted


async def _post(asked: Asked, user: str, given: Value, key: str | None = None) -> Posted:
    now, value = asked.now, parse_number(given.value, "value")
    submitted = await asked.call.laurels.submit(
        asked.call.board, user, value, at=datetime_of(now), op=OPERATIONS[given.type], id=key
    )
    if submitted.score is None or submitted.rank is None:  # the id was seen in a period that is over
        raise NotFound(f"{asked.call.board}: {user!r} has no entry in the period of that {FIELD}")
    return Posted(
        game=asked.call.project,
        board=asked.of.board,
        range=asked.of.code,
        slot=asked.of.spelled(asked.of.current(now)),
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


async def _make(asked: Asked) -> None:
    """The board of this range is there; whoever else makes it at this moment."""
    try:
        await asked.check()
    except NotFound:
        try:
            await asked.call.laurels.define(asked.call.board, asked.of.definition, only_new=True)
        except Conflict:
            pass
        except InvalidInput as error:
            raise Conflict(f"{asked.call.board} cannot be made: {error.detail}") from error
        await asked.check()


async def _leaders(asked: Asked, slot: Slot) -> Leaders:
    parameters = query(asked.call.request, LeadersParameters)
    await asked.check()
    first, limit = parameters.offset, parameters.limit
    if parameters.friends is None:
        page = await asked.call.laurels.page(asked.call.board, slot=slot.text, rank=first + 1, limit=limit)
        total, entries = page.total, page.entries
    else:
        among = await asked.call.laurels.among(asked.call.board, _friends(parameters.friends), slot=slot.text)
        total, entries = among.total, among.entries[first : first + limit]
    return Leaders(
        game=asked.call.project,
        board=asked.of.board,
        range=asked.of.code,
        slot=asked.of.spelled(slot),
        total=total,
        entries=[Ranked(rank=each.rank, user=each.member, value=each.score) for each in entries],
    )


def _friends(listed: str) -> list[str]:
    try:
        friends = [unquote_to_bytes(each).decode() for each in listed.split(",")] if listed else []
        for friend in friends:
            check_member(friend)
    except (UnicodeError, InvalidInput) as error:
        why = error.detail if isinstance(error, InvalidInput) else "not UTF-8"
        raise InvalidInput.at("friends", f"write users with commas between ({why})") from error
    if len(friends) > AMONG_LIMIT:
        raise InvalidInput.at("friends", f"must be at most {AMONG_LIMIT}, not {len(friends)}")
    return friends
