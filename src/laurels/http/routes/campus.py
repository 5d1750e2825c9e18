"""Campus leaderboards and streaks (docs/reference/campus.md), for the project `campus`."""

from dataclasses import asdict
from typing import Annotated, Final, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType, field
from starlette.requests import Request

from laurels.activity.rankings import PROJECT
from laurels.activity.scoring import SCOPES, Scope
from laurels.activity.store.people import Campus
from laurels.activity.summary import RankingRow, TableQuery
from laurels.errors import Forbidden, InvalidInput, NotFound
from laurels.http.authentication import Call, identify
from laurels.http.operation import Operation, Routes
from laurels.moments import Timestamp
from laurels.scores.page_query import PAGE_LIMIT


class Deltas(Struct, frozen=True):
    """The changes since the day before; null for a user who was not in that table."""

    rank: int | None
    score: float | None


class LeaderboardRow(Struct, frozen=True):
    """A user's rank and score, with `deltas` if requested."""

    rank: int
    user_id: UUID
    score: float
    handle: str
    avatar_url: str | None
    deltas: Deltas | UnsetType = UNSET


class LeaderboardResponse(Struct, frozen=True):
    """A part of a campus's table, best first, with `user` if requested."""

    scope: str
    period: str
    ymd: int
    campus_id: UUID
    items: list[LeaderboardRow]
    total: int
    next_reset_at: Timestamp
    user: LeaderboardRow | UnsetType | None = UNSET


class UserStreak(Struct, frozen=True):
    """The number of active days in a row, as of the last finalized day."""

    current: int
    best: int
    last_active_ymd: int


class UserBadge(Struct, frozen=True):
    """A badge, and the day on which it was earned."""

    kind: str
    earned_ymd: int


class CampusInfo(Struct, frozen=True):
    """A campus, and its current date."""

    id: UUID
    name: str
    timezone: str
    ymd: int


class CampusList(Struct, frozen=True):
    """All campuses, sorted by name."""

    campuses: list[CampusInfo]


class MySummary(Struct, frozen=True):
    """The player's standing today; null where there is no entry yet."""

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


class MyDay(Struct, frozen=True):
    """A day on which the player was active: the score, and the streak that it reached."""

    ymd: int
    overall: float
    streak: int


class MyDays(Struct, frozen=True):
    """Finalized days on which the player was active, oldest first."""

    days: list[MyDay]


YMD: Final = Meta(ge=19000101, le=99991231, examples=[20251024])


class LeaderboardParameters(Struct, forbid_unknown_fields=True):
    campus_id: Annotated[
        UUID, Meta(description="The campus.", examples=["7a7cbb2e-0f5c-4a0e-9c44-3d1f2f5f6a11"])
    ]
    period: Annotated[
        Literal["daily", "weekly", "monthly"],
        Meta(description="The day, or the sum of the 7 or 30 days that end with it."),
    ] = "daily"
    ymd: Annotated[
        Annotated[int, YMD] | None, Meta(description="A date of the campus. Default: today there.")
    ] = None
    limit: Annotated[int, Meta(ge=1, le=PAGE_LIMIT, description="How many rows.")] = 100
    offset: Annotated[int, Meta(ge=0, le=2**31 - 1, description="How many of the best to skip.")] = 0
    deltas: Annotated[bool, Meta(description="Whether to add the changes since the day before.")] = False
    user_id: Annotated[
        UUID | None, Meta(description="A user whose row is added as `user`; null if there is none.")
    ] = None


class DaysParameters(Struct, forbid_unknown_fields=True):
    first: Annotated[Annotated[int, YMD], Meta(description="The first date.")] = field(name="from")
    last: Annotated[Annotated[int, YMD], Meta(description="The last date, less than 400 days later.")] = (
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


async def _admit_reader(request: Request, operation: Operation) -> Call:
    call = await identify(request)
    call.principal.check(PROJECT, operation.required_scope)
    return call


async def _admit_to_table(request: Request, operation: Operation) -> Call:
    call = await _admit_reader(request, operation)
    scope: str = request.path_params["scope"]
    if scope not in SCOPES:
        raise NotFound(f"there is no scope {scope[:40]!r}; there are: {', '.join(SCOPES)}")
    return call


async def _admit_player(request: Request, operation: Operation) -> Call:
    """Admits a player; the call's `name` is the user's id."""
    call = await _admit_reader(request, operation)
    if call.principal.player is None:
        raise Forbidden("`me` is the player of a token: send a player's token instead of an API key")
    try:
        call.name = str(UUID(call.principal.player.member))
    except ValueError as error:
        raise NotFound("there is no such user: users of campuses have UUIDs") from error
    return call


_IN_PATH: Final = {
    "user_id": {"description": "A user's UUID.", "schema": {"type": "string", "examples": [_USER]}},
    "scope": {
        "description": "A pillar, or `overall`.",
        "schema": {"type": "string", "enum": list(SCOPES), "examples": ["overall"]},
    },
}

routes = Routes("campus", _admit_reader, in_path=_IN_PATH)
tables = Routes("campus", _admit_to_table, in_path=_IN_PATH)
mine = Routes("campus", _admit_player, "Only for a player's token, whose `sub` is the user's id.")


@routes.get("/leaderboards/campuses", scope="read", example={"campuses": [_CAMPUS]})
async def list_campuses(call: Call) -> CampusList:
    """List the campuses.

    Each with its current date.
    """
    found = await call.laurels.activity.reader.campuses()
    return CampusList([_campus(campus, ymd) for campus, ymd in found])


@mine.get(
    "/leaderboards/me/summary",
    scope="read",
    example={
        "ymd": 20251024,
        "campus_id": _CAMPUS["id"],
        "ranks": {"social": 4, "popularity": None, "engagement": 2, "overall": 3},
        "scores": {"social": 5.3, "popularity": None, "engagement": 9.0, "overall": 17.5},
        "streak": _STREAK,
        "badges": [{"kind": "daily_top10", "earned_ymd": 20251023}],
        "user_id": _USER,
        **_NAMED,
        "campus": _CAMPUS,
    },
    problems=(404,),
)
async def read_my_summary(call: Call) -> MySummary:
    """Read my standing.

    Today's ranks and scores, the streak, and all badges.
    """
    found = await call.laurels.activity.reader.summary(call.name)
    places = found.places
    return MySummary(
        ymd=found.ymd,
        campus_id=UUID(found.campus.id),
        ranks={scope: place.rank if place else None for scope, place in places.items()},
        scores={scope: float(place.score) if place else None for scope, place in places.items()},
        streak=UserStreak(**asdict(found.streak)),
        badges=[UserBadge(*badge) for badge in found.badges],
        user_id=UUID(found.user.id),
        handle=found.user.handle,
        avatar_url=found.user.avatar_url,
        campus=_campus(found.campus, found.ymd),
    )


@mine.get(
    "/leaderboards/me/days",
    scope="read",
    example={"days": [{"ymd": 20251023, "overall": 17.5, "streak": 12}]},
    problems=(404,),
)
async def list_my_days(call: Call, query: DaysParameters) -> MyDays:
    """List my active days.

    Only finalized days, for a calendar.
    """
    found = await call.laurels.activity.reader.days(call.name, query.first, query.last)
    return MyDays([MyDay(day.ymd, float(day.overall), day.streak) for day in found])


@routes.get("/leaderboards/streaks/{user_id:segment}", scope="read", example=_STREAK)
async def read_streak(call: Call, user_id: str) -> UserStreak:
    """Read a user's streak.

    As of the last finalized day. All values are 0 for a user without a streak.
    """
    try:
        user = str(UUID(user_id))
    except ValueError as error:
        raise InvalidInput.at("user_id", "must be a UUID") from error
    return UserStreak(**asdict(await call.laurels.activity.reader.streak(user)))


@tables.get(
    "/leaderboards/{scope:segment}",
    scope="read",
    example={
        "scope": "overall",
        "period": "daily",
        "ymd": 20251024,
        "campus_id": _CAMPUS["id"],
        "items": [{"rank": 1, "user_id": _USER, "score": 17.5, **_NAMED}],
        "total": 1,
        "next_reset_at": "2025-10-24T22:00:00Z",
    },
    problems=(404,),
)
async def read_leaderboard(call: Call, scope: Scope, query: LeaderboardParameters) -> LeaderboardResponse:
    """Read a campus's table.

    The table of a day, today or finalized, or of the 7 or 30 days that end with it.
    """
    table = await call.laurels.activity.reader.table(
        TableQuery(
            scope,
            query.period,
            str(query.campus_id),
            query.ymd,
            query.limit,
            query.offset,
            query.deltas,
            str(query.user_id) if query.user_id else None,
        )
    )
    return LeaderboardResponse(
        scope=scope,
        period=query.period,
        ymd=table.ymd,
        campus_id=query.campus_id,
        items=[_row(row) for row in table.rows],
        total=table.total,
        next_reset_at=table.next_reset_at,
        user=UNSET if query.user_id is None else table.user and _row(table.user),
    )


def _row(row: RankingRow) -> LeaderboardRow:
    return LeaderboardRow(
        rank=row.placed.rank,
        user_id=UUID(row.placed.user_id),
        score=float(row.placed.score),
        handle=row.user.handle if row.user else "",
        avatar_url=row.user.avatar_url if row.user else None,
        deltas=Deltas(*row.delta) if row.delta else UNSET,
    )


def _campus(campus: Campus, ymd: int) -> CampusInfo:
    return CampusInfo(UUID(campus.id), campus.name, campus.timezone, ymd)
