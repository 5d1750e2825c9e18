"""Campus leaderboards and streaks (docs/reference/campus.md), for the project `campus`."""

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Request
from msgspec import Meta, Struct, field
from pydantic import BaseModel

from laurels.activity.rankings import PROJECT
from laurels.activity.scoring import SCOPES
from laurels.activity.summary import RankingRow, TableQuery
from laurels.errors import Forbidden, InvalidInput, NotFound
from laurels.http.authentication import Call, identify
from laurels.http.openapi import own_name, problem_answers, query_parameters
from laurels.http.parameters import NoParameters, parse_pairs, query
from laurels.scores.page_query import PAGE_LIMIT

router = APIRouter(tags=["campus"], generate_unique_id_function=own_name)


class Deltas(BaseModel):
    """What changed since the day before; null for who was not in that table."""

    rank: int | None
    score: float | None


class LeaderboardRow(BaseModel):
    """A user's rank and score; `deltas` where they are asked for."""

    rank: int
    user_id: UUID
    score: float
    handle: str
    avatar_url: str | None
    deltas: Deltas | None = None


class LeaderboardResponse(BaseModel):
    """A stretch of a campus's table, best first; `user` where one is asked about."""

    scope: str
    period: str
    ymd: int
    campus_id: UUID
    items: list[LeaderboardRow]
    total: int
    next_reset_at: datetime
    user: LeaderboardRow | None = None


class UserStreak(BaseModel):
    """Days in a row, as the last finalized day left them."""

    current: int
    best: int
    last_active_ymd: int


class UserBadge(BaseModel):
    """A badge, and the day that it was earned on."""

    kind: str
    earned_ymd: int


class CampusInfo(BaseModel):
    """A campus, and the date there."""

    id: UUID
    name: str
    timezone: str
    ymd: int


class CampusList(BaseModel):
    """Every campus, by name."""

    campuses: list[CampusInfo]


class MySummary(BaseModel):
    """How the player stands today: null where there is no entry yet."""

    ymd: int
    campus_id: UUID
    ranks: dict[str, int | None]
    scores: dict[str, float | None]
    streak: UserStreak
    badges: list[UserBadge]
    user_id: UUID
    handle: str
    avatar_url: str | None
    campus: CampusInfo


class MyDay(BaseModel):
    """A day on which the player was active: the score, and the streak that it reached."""

    ymd: int
    overall: float
    streak: int


class MyDays(BaseModel):
    """Finalized days on which the player was active, oldest first."""

    days: list[MyDay]


YMD: Final = Meta(ge=19000101, le=99991231, examples=[20251024])


class LeaderboardParameters(Struct, forbid_unknown_fields=True):
    campus_id: Annotated[
        UUID, Meta(description="Whose table.", examples=["7a7cbb2e-0f5c-4a0e-9c44-3d1f2f5f6a11"])
    ]
    period: Annotated[
        Literal["daily", "weekly", "monthly"],
        Meta(description="The day, or the sum of the 7 or 30 days that end with it."),
    ] = "daily"
    ymd: Annotated[
        Annotated[int, YMD] | None, Meta(description="A date of the campus. Default: today there.")
    ] = None
    limit: Annotated[int, Meta(ge=1, le=PAGE_LIMIT, description="How many rows.")] = 100
    offset: Annotated[int, Meta(ge=0, le=2**31 - 1, description="How many of the best to leave out.")] = 0
    deltas: Annotated[bool, Meta(description="Whether to tell what changed since the day before.")] = False
    user_id: Annotated[
        UUID | None, Meta(description="Whose row to tell too, as `user`; null if they have none.")
    ] = None


class DaysParameters(Struct, forbid_unknown_fields=True):
    first: Annotated[Annotated[int, YMD], Meta(description="The first date.")] = field(name="from")
    last: Annotated[Annotated[int, YMD], Meta(description="The last date, by less than 400 days later.")] = (
        field(name="to")
    )


_CAMPUS: Final = {
    "id": "7a7cbb2e-0f5c-4a0e-9c44-3d1f2f5f6a11",
    "name": "North",
    "timezone": "Europe/Oslo",
    "ymd": 20251024,
}
_USER: Final = "0b8f0a3c-52a5-4b53-8ab5-3a1c5e1b7c55"
_STREAK: Final = {"current": 12, "best": 30, "last_active_ymd": 20251023}
_NAMED: Final = {"handle": "ada", "avatar_url": None}


def _shown(example: object) -> dict[str, Any]:
    return {"content": {"application/json": {"example": example}}}


async def _reader(request: Request) -> Call:
    call = await identify(request)
    call.principal.check(PROJECT, "read")
    return call


async def _player(request: Request) -> Call:
    """A player; `name` is who."""
    call = await _reader(request)
    if call.principal.player is None:
        raise Forbidden("`me` is the player of a token; a key is nobody")
    call.name = _user(call.principal.player.member)
    return call


def _user(text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError as error:
        raise NotFound("there is no such user: users of campuses have UUIDs") from error


Reading = Annotated[Call, Depends(_reader)]
Playing = Annotated[Call, Depends(_player)]


@router.get(
    "/leaderboards/campuses",
    summary="List the campuses",
    responses={200: _shown({"campuses": [_CAMPUS]}), **problem_answers(401, 403, 422, 503)},
)
async def list_campuses(call: Reading) -> CampusList:
    """Each with the date that it is there.

    Needs the scope `read`.
    """
    query(call.request, NoParameters)
    found = await call.laurels.activity.reader.campuses()
    return CampusList(
        campuses=[CampusInfo.model_validate({**asdict(each), "ymd": ymd}) for each, ymd in found]
    )


@router.get(
    "/leaderboards/me/summary",
    summary="Read how I stand",
    responses={
        200: _shown(
            {
                "ymd": 20251024,
                "campus_id": _CAMPUS["id"],
                "ranks": {"social": 4, "popularity": None, "engagement": 2, "overall": 3},
                "scores": {"social": 5.3, "popularity": None, "engagement": 9.0, "overall": 17.5},
                "streak": _STREAK,
                "badges": [{"kind": "daily_top10", "earned_ymd": 20251023}],
                "user_id": _USER,
                **_NAMED,
                "campus": _CAMPUS,
            }
        ),
        **problem_answers(401, 403, 404, 422, 503),
    },
)
async def read_my_summary(call: Playing) -> MySummary:
    """Ranks and scores of today, the streak, and every badge.

    Only for a player's token, whose `sub` is the user's id. Needs the scope `read`.
    """
    query(call.request, NoParameters)
    found = await call.laurels.activity.reader.summary(call.name)
    places = found.places
    return MySummary(
        ymd=found.ymd,
        campus_id=UUID(found.campus.id),
        ranks={scope: place.rank if place else None for scope, place in places.items()},
        scores={scope: place.score if place else None for scope, place in places.items()},
        streak=UserStreak(**asdict(found.streak)),
        badges=[UserBadge(**badge._asdict()) for badge in found.badges],
        user_id=UUID(found.user.id),
        handle=found.user.handle,
        avatar_url=found.user.avatar_url,
        campus=CampusInfo.model_validate({**asdict(found.campus), "ymd": found.ymd}),
    )


@router.get(
    "/leaderboards/me/days",
    summary="List my active days",
    responses={
        200: _shown({"days": [{"ymd": 20251023, "overall": 17.5, "streak": 12}]}),
        **problem_answers(401, 403, 404, 422, 503),
    },
    openapi_extra={"parameters": list(query_parameters(DaysParameters))},
)
async def list_my_days(call: Playing) -> MyDays:
    """Those that are finalized, for a calendar.

    Only for a player's token, whose `sub` is the user's id. Needs the scope `read`.
    """
    asked = parse_pairs(call.request.scope["query_string"], DaysParameters)
    found = await call.laurels.activity.reader.days(call.name, asked.first, asked.last)
    return MyDays(days=[MyDay(**day._asdict()) for day in found])


@router.get(
    "/leaderboards/streaks/{user_id:segment}",
    summary="Read a user's streak",
    responses={200: _shown(_STREAK), **problem_answers(401, 403, 422, 503)},
)
async def read_streak(
    call: Reading, user_id: Annotated[str, Path(description="A user's UUID.", examples=[_USER])]
) -> UserStreak:
    """As the last finalized day left it. Of whom nothing is known, all is 0.

    Needs the scope `read`.
    """
    query(call.request, NoParameters)
    try:
        user = str(UUID(user_id))
    except ValueError as error:
        raise InvalidInput.at("user_id", "must be a UUID") from error
    return UserStreak(**asdict(await call.laurels.activity.reader.streak(user)))


@router.get(
    "/leaderboards/{scope:segment}",
    summary="Read a campus's table",
    response_model_exclude_unset=True,
    responses={
        200: _shown(
            {
                "scope": "overall",
                "period": "daily",
                "ymd": 20251024,
                "campus_id": _CAMPUS["id"],
                "items": [{"rank": 1, "user_id": _USER, "score": 17.5, **_NAMED}],
                "total": 1,
                "next_reset_at": "2025-10-24T22:00:00Z",
            }
        ),
        **problem_answers(401, 403, 404, 422, 503),
    },
    openapi_extra={"parameters": list(query_parameters(LeaderboardParameters))},
)
async def read_leaderboard(
    call: Reading,
    scope: Annotated[
        str,
        Path(
            description="A pillar, or all of them.",
            examples=["overall"],
            json_schema_extra={"enum": list(SCOPES)},
        ),
    ],
) -> LeaderboardResponse:
    """The day as it stands, or as it ended; or the sum of the 7 or 30 days that end with it.

    Needs the scope `read`.
    """
    for known in SCOPES:
        if known == scope:
            break
    else:
        raise NotFound(f"there is no scope {scope[:40]!r}; there are: {', '.join(SCOPES)}")
    asked = parse_pairs(call.request.scope["query_string"], LeaderboardParameters)
    table = await call.laurels.activity.reader.table(
        TableQuery(
            known,
            asked.period,
            str(asked.campus_id),
            asked.ymd,
            asked.limit,
            asked.offset,
            asked.deltas,
            str(asked.user_id) if asked.user_id else None,
        )
    )
    apart = {"user": table.user and _row(table.user)} if asked.user_id else {}
    return LeaderboardResponse(
        scope=scope,
        period=asked.period,
        ymd=table.ymd,
        campus_id=asked.campus_id,
        items=[_row(row) for row in table.rows],
        total=table.total,
        next_reset_at=table.next_reset_at,
        **apart,
    )


def _row(row: RankingRow) -> LeaderboardRow:
    told: dict[str, Any] = {
        "rank": row.placed.rank,
        "user_id": row.placed.user_id,
        "score": row.placed.score,
        "handle": row.user.handle if row.user else "",
        "avatar_url": row.user.avatar_url if row.user else None,
    }
    if row.delta:
        told["deltas"] = row.delta._asdict()
    return LeaderboardRow.model_validate(told)
