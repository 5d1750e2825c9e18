"""A board's definition, as the HTTP API, `laurels apply` and Python give it.

A definition is a frozen value. It is validated here, before anything is stored; errors name the path of the
field and the fix.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Literal, Self, cast

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    StrictBool,
    StrictInt,
    ValidationError,
    field_validator,
    model_validator,
)

from laurels.boards.declared import Declaration
from laurels.boards.durations import Duration, Keep  # noqa: TC001  # pydantic reads the annotations
from laurels.boards.names import BOARD_PATTERN, NAME_PATTERN
from laurels.boards.ordering import INT64_MAX, INT64_MIN
from laurels.boards.patterns import Pattern
from laurels.boards.rating import Rating  # noqa: TC001  # pydantic reads the annotations
from laurels.boards.templates import check_template, key_parts
from laurels.boards.timezones import zone_names
from laurels.errors import Conflict, FieldError, InvalidInput
from laurels.valkey.names import BOARD_NAMES
from laurels.wording import near, suggestion

if TYPE_CHECKING:
    from collections.abc import Iterator

# Values in a given definition, nested ones included. The largest valid one has some hundreds.
MOST_VALUES = 5000

Aggregate = Literal["best", "last", "first", "sum"]
Period = Literal["hourly", "daily", "weekly", "monthly", "yearly", "all_time", "rolling", "every"]

# The flows that own boards.
Owner = Literal["campus", "index"]
OWNERS: dict[Owner, str] = {"campus": "the campus flow", "index": "an index declared on a model"}

Name = Annotated[str, Field(pattern=NAME_PATTERN)]

# What a base window must be so that it tiles the window that sums it.
SUMMABLE: dict[str, frozenset[str]] = {
    "daily": frozenset({"hourly"}),
    "weekly": frozenset({"hourly", "daily"}),
    "monthly": frozenset({"hourly", "daily"}),
    "yearly": frozenset({"hourly", "daily", "monthly"}),
    "all_time": frozenset({"hourly", "daily", "weekly", "monthly", "yearly", "every"}),
    "rolling": frozenset({"daily"}),
    "every": frozenset({"every"}),
}


def _known_zone(name: str) -> str:
    if name not in zone_names():
        like = near(name, zone_names())
        fix = f"did you mean {like}?" if like else "write it like 'America/Sao_Paulo'"
        raise ValueError(f"{name!r} is not an IANA timezone; {fix}")
    return name


Timezone = Annotated[str, AfterValidator(_known_zone)]


class Window(Declaration):
    """One period that the board is ranked over."""

    period: Period
    keep: Keep | None = Field(
        default=None,
        description="How many windows stay queryable, the current one included; or an ISO duration after "
        "the window's end (P30D); null keeps all.",
    )
    name: Name | None = Field(
        default=None, description="What `period=` asks for. Default: the period; rolling_7d; every_3600s."
    )
    sum_of: Name | None = Field(
        default=None, description="The window whose entries this one sums: each day's entry, over a week."
    )
    days: Annotated[StrictInt, Field(ge=1, le=366)] | None = Field(
        default=None, description="For `rolling`: how many days, today included."
    )
    seconds: Annotated[StrictInt, Field(ge=1, le=366 * 86_400)] | None = Field(
        default=None, description="For `every`: the length of each window."
    )

    @property
    def label(self) -> str:
        """The name that `period=` asks for."""
        if self.name:
            return self.name
        if self.period == "rolling":
            return f"rolling_{self.days}d"
        if self.period == "every":
            return f"every_{self.seconds}s"
        return self.period

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.days is not None) != (self.period == "rolling"):
            raise ValueError("`days` belongs to period 'rolling', and it needs one")
        if (self.seconds is not None) != (self.period == "every"):
            raise ValueError("`seconds` belongs to period 'every', and it needs one")
        if self.period == "all_time" and self.keep is not None:
            raise ValueError("an all_time window never ends, so it takes no `keep`")
        if self.sum_of is not None and self.period not in SUMMABLE:
            raise ValueError(f"a window of period {self.period!r} cannot sum another")
        return self


def _parse_bound(bound: object) -> object:
    """A finite number in the range of doubles."""
    if isinstance(bound, bool) or not isinstance(bound, int | float):
        raise ValueError("must be a number")  # noqa: TRY004  # pydantic reports only ValueError
    try:
        is_finite = math.isfinite(float(bound))
    except OverflowError:
        is_finite = False
    if not is_finite:
        raise ValueError("must be a finite number")
    return bound


Bound = Annotated[int | float, BeforeValidator(_parse_bound, json_schema_input_type=int | float)]


class Limits(Declaration):
    """Submissions outside these are refused."""

    min: Bound | None = Field(default=None, description="The least score that is accepted.")
    max: Bound | None = Field(default=None, description="The greatest score that is accepted.")
    max_change: Annotated[Bound, Field(gt=0)] | None = Field(
        default=None, description="How far one submission may move the entry in the board's first window."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"min {self.min} is greater than max {self.max}")
        return self

    def __bool__(self) -> bool:
        return self != Limits()


class Snapshot(Declaration):
    """A policy that archives a window, or the top of it, at its end; and every day if asked for."""

    period: Name = Field(description="The window, by the name that `period=` asks for.")
    top: Annotated[StrictInt, Field(ge=1)] | None = Field(
        default=None, description="How many entries, from the best; null takes all."
    )
    every: Literal["day"] | None = Field(
        default=None, description="`day`: also at each midnight; an all_time window never ends, so needs it."
    )


class Archive(Declaration):
    """What PostgreSQL keeps of the board."""

    snapshot: tuple[Snapshot, ...] = ()
    journal: StrictBool = True


class BoardDefinition(Declaration):
    """The definition of a board. Unknown fields are refused."""

    tagged = frozenset({"rating"})

    aggregate: Aggregate = Field(default="best", description="What a new score does to an entry.")
    allow_op: StrictBool = Field(default=False, description="Whether a submission may carry its own `op`.")
    order: Literal["desc", "asc"] = Field(default="desc", description="`asc`: the smallest score is best.")
    score: Literal["number", "int64"] = Field(default="number", description="A double, or a 64-bit integer.")
    ties: Literal["shared", "earliest", "member"] = Field(
        default="shared", description="Equal scores: rank 1-2-2-4; first to reach it; or member id ascending."
    )
    windows: tuple[Window, ...] = Field(default=(Window(period="all_time"),), min_length=1, max_length=32)
    timezone: Timezone = Field(default="UTC", description="Where the board's days begin.")
    timezone_by: Name | None = Field(
        default=None, description="A group dimension whose values have their own zone, listed in `timezones`."
    )
    timezones: dict[str, Timezone] = Field(
        default_factory=dict, description="For `timezone_by`: value -> zone; others use `timezone`."
    )
    groups: tuple[Annotated[tuple[Name, ...], Field(min_length=1, max_length=8)], ...] = Field(
        default=(),
        max_length=16,
        description='Cuts ranked besides the whole: [["country"], ["region", "city"]].',
    )
    dense: StrictBool = Field(default=False, description="Keeps dense ranks (1-2-2-3) ready.")
    feeds: tuple[Annotated[str, Field(pattern=BOARD_PATTERN)], ...] = Field(
        default=(), max_length=16, description="Boards `project/board` that receive every submission too."
    )
    lateness: Duration = Field(default=timedelta(days=1), description="How old `at` may be.")
    archive: Archive = Archive()
    limits: Limits = Limits()
    player_writes: StrictBool = Field(default=False, description="Whether players submit for themselves.")
    shards: Annotated[StrictInt, Field(ge=1, le=256)] = Field(
        default=1, description="Over how many hash slots the members are spread."
    )
    keys: dict[str, str] | None = Field(
        default=None, description="Window name (or `name:dimension,dimension` for a group) -> key template."
    )
    adopt: StrictBool = Field(
        default=False,
        description="Whether sorted sets of other programs under the names in `keys` become windows of the "
        "board. Dropping the board leaves them.",
    )
    rating: Rating | None = Field(
        default=None,
        description="Scores come from matches: each entry is the rating after the last one in its window.",
    )

    @property
    def dimensions(self) -> frozenset[str]:
        """Every group dimension that a submission may name."""
        return frozenset(name for group in self.groups for name in group)

    def window(self, label: str) -> Window | None:
        """The window that `period=label` asks for."""
        return next((window for window in self.windows if window.label == label), None)

    @model_validator(mode="before")
    @classmethod
    def _ratings_are_last(cls, fields: object) -> object:
        """A rating replaces the one before it, so `aggregate` need not say so."""
        if isinstance(fields, dict):
            given = cast("dict[str, object]", fields)
            if given.get("rating") is not None and "aggregate" not in given:
                return {**given, "aggregate": "last"}
        return fields  # pyright: ignore[reportUnknownVariableType]  # pydantic validates it next

    @field_validator("lateness")
    @classmethod
    def _lateness_is_not_negative(cls, lateness: timedelta) -> timedelta:
        if lateness < timedelta(0):
            raise ValueError("must not be negative")
        return lateness

    @field_validator("windows")
    @classmethod
    def _windows_agree(cls, windows: tuple[Window, ...]) -> tuple[Window, ...]:
        by_label: dict[str, Window] = {}
        for window in windows:
            if window.label in by_label:
                raise ValueError(f"two windows are called {window.label!r}; give one a `name`")
            by_label[window.label] = window
        for window in windows:
            _check_sum(window, by_label)
            if window.label in SUMMABLE.keys() | {"hourly"} and window.label != window.period:
                raise ValueError(
                    f"{window.label!r} is a period's own name; give the {window.period} window another name"
                )
            if window.label in BOARD_NAMES:
                raise ValueError(f"{window.label!r} is a reserved name; choose another")
        return windows

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.dense and self.shards > 1:
            raise ValueError("dense: distinct scores cannot be counted across shards; use one shard")
        if len(set(self.feeds)) != len(self.feeds):
            raise ValueError("feeds: a board is listed twice, so every submission would count twice")
        self._check_groups()
        self._check_archive()
        self._check_scores()
        self._check_rating()
        self._check_keys()
        self._check_adopt()
        return self

    def _check_groups(self) -> None:
        for group in self.groups:
            if len(set(group)) != len(group):
                raise ValueError(f"groups: {list(group)} names a dimension twice")
        if len({frozenset(group) for group in self.groups}) != len(self.groups):
            raise ValueError("groups: the same dimensions are listed twice")
        if self.timezone_by is not None and self.timezone_by not in self.dimensions:
            raise ValueError(f"timezone_by: {self.timezone_by!r} is not a dimension in `groups`")
        if self.timezones and self.timezone_by is None:
            raise ValueError("timezones: needs `timezone_by`, the dimension whose values these are")

    def _check_archive(self) -> None:
        for index, snapshot in enumerate(self.archive.snapshot):
            window = self.window(snapshot.period)
            if window is None:
                known = [each.label for each in self.windows]
                raise ValueError(
                    f"archive.snapshot[{index}].period: the board has no window {snapshot.period!r}; "
                    f"{suggestion(snapshot.period, known)}"
                )
            if window.period == "all_time" and snapshot.every is None:
                raise ValueError(
                    f"archive.snapshot[{index}].every: an all_time window never ends; say every = 'day'"
                )

    def _check_scores(self) -> None:
        if self.score == "int64":
            for field in ("min", "max", "max_change"):
                bound = getattr(self.limits, field)
                if bound is not None and not (isinstance(bound, int) and INT64_MIN <= bound <= INT64_MAX):
                    raise ValueError(f"limits.{field}: must be a 64-bit integer on an int64 board")

    def _check_rating(self) -> None:
        """Raises for fields that make no sense for ratings."""
        if self.rating is None:
            return
        if self.score != "number":
            raise ValueError("rating: ratings are fractional, so `score` must be 'number'")
        if self.aggregate != "last":
            raise ValueError("aggregate: a rating replaces the one before it; with `rating` it is 'last'")
        if self.shards > 1:
            raise ValueError("shards: a match changes its players in one call, so `rating` needs one shard")
        if any(window.sum_of for window in self.windows):
            raise ValueError("windows: a sum of ratings means nothing; with `rating` leave out `sum_of`")
        beside = {"allow_op": self.allow_op, "limits": self.limits, "feeds": self.feeds}
        for field, value in {**beside, "player_writes": self.player_writes}.items():
            if value:
                raise ValueError(
                    f"{field}: applies to submitted scores; with `rating`, scores come from matches"
                )

    def _check_keys(self) -> None:
        if self.keys is None:
            return
        if self.shards > 1:
            raise ValueError("keys: a board with shards spreads over many keys, so it takes no templates")
        cuts = {",".join(group): group for group in self.groups}
        patterns: dict[str, Pattern] = {}
        for target, template in self.keys.items():
            label, _, cut = target.partition(":")
            window = self.window(label)
            if window is None:
                known = [each.label for each in self.windows]
                why = f"the board has no window called {label!r}; {suggestion(label, known)}"
                raise ValueError(f"keys.{target}: {why}")
            if cut and cut not in cuts:
                why = f"{cut!r} is not one of the board's groups; {suggestion(cut, [*cuts])}"
                raise ValueError(f"keys.{target}: {why}")
            check_template(target, template, window.period, cuts[cut] if cut else ())
            pattern = Pattern.of(*key_parts(template, window.period))
            for other, known in patterns.items():
                if template == self.keys[other]:
                    raise ValueError(f"keys.{target}: has the same template as {other!r}")
                if pattern.meets(known):
                    raise ValueError(f"keys.{target}: can make the same key as {other!r}")
            patterns[target] = pattern

    def _check_adopt(self) -> None:
        if not self.adopt:
            return
        if not self.keys:
            raise ValueError("adopt: takes over what `keys` names, so name keys there")
        is_computed = any(window.sum_of or window.period == "rolling" for window in self.windows)
        is_exact = self.score != "number" or self.ties != "shared"
        if is_computed or is_exact or self.dense or self.rating:
            raise ValueError(
                "adopt: takes over plain sorted sets: with score 'number' and ties 'shared', "
                "without dense, rating, sum_of and rolling windows"
            )


@dataclass(frozen=True)
class StoredBoard:
    project: str
    board: str
    definition: BoardDefinition
    version: int
    """Grows with every change. No other board ever gets it, not even a later one of the same name."""
    created_at: datetime
    updated_at: datetime
    created: bool = False
    """Whether the call that returned this made the board."""
    id: int = 0
    """The first version. It identifies the board in PostgreSQL, because names are reused; 0 over HTTP."""
    owner: Owner | None = None
    """The flow that owns the board: only it writes to it."""

    def require_writer(self, writer: Owner | None) -> None:
        """Raises `Conflict` unless this writer may change the board. None: any caller but a flow."""
        require_writer(f"{self.project}/{self.board}", self.owner, writer)


class HoldLost(Conflict):
    """The board was released before the change that it was held for."""


def require_writer(board: str, owner: Owner | None, writer: Owner | None) -> None:
    if owner not in (None, writer):
        raise Conflict(f"{board} belongs to {OWNERS[owner]}; others can only read it")


def _check_sum(window: Window, by_label: dict[str, Window]) -> None:
    if window.sum_of is None:
        return
    base = by_label.get(window.sum_of)
    if base is None:
        named = f"{window.label!r} sums {window.sum_of!r}, which is not a window of the board"
        raise ValueError(f"{named}; {suggestion(window.sum_of, [*by_label])}")
    if base.sum_of is not None or base.period == "rolling":
        raise ValueError(f"{window.label!r} sums {window.sum_of!r}, which is itself derived")
    tiles = base.period in SUMMABLE[window.period] and base is not window
    if base.period == "every" and window.period == "every":
        tiles = tiles and (window.seconds or 0) % (base.seconds or 1) == 0
    if not tiles:
        raise ValueError(f"{base.label!r} windows do not fit whole into {window.label!r} ones")


def parse_definition(fields: object) -> BoardDefinition:
    """The definition that these fields declare; raises `InvalidInput` with every field that is wrong."""
    _check_size(fields)
    try:
        return BoardDefinition.model_validate(fields)
    except ValidationError as error:
        found = tuple(field_errors(error))
        raise InvalidInput("; ".join(f"{each.field}: {each.detail}" for each in found), *found) from error


def _check_size(fields: object) -> None:
    """Limits the number of values: pydantic's error for each invalid value is a thousand times its size."""
    values = [fields]
    for place, value in enumerate(values):
        if place == MOST_VALUES:
            raise InvalidInput.at("definition", f"has more than {MOST_VALUES} values")
        if isinstance(value, dict):
            values += cast("dict[str, object]", value).values()
        elif isinstance(value, list):
            values += cast("list[object]", value)


def field_errors(error: ValidationError) -> Iterator[FieldError]:
    """The errors of a definition: path in the input, and reason."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    around = {each["loc"][:steps] for each in found for steps in range(len(each["loc"]))}
    for each in found:
        location = each["loc"]
        is_echo = each["type"] == "too_short" and location in around
        if not is_echo:
            yield _about(location, each["msg"].removeprefix("Value error, "))


def _about(location: tuple[int | str, ...], message: str) -> FieldError:
    """The field of an error. Errors of the whole model begin with the path of the field to change."""
    named = re.match(r"(\w+(?:\[\d+\]|\.\w+)*): ", message) if not location else None
    if named:
        return FieldError(named[1], message[named.end() :])
    return FieldError(_path(location), message)


def _path(location: tuple[int | str, ...]) -> str:
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in location)
    return path.removeprefix(".") or "definition"
