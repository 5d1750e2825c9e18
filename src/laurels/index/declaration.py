"""What a model declares, and what it means: the board that holds the index, and its columns. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeAlias, TypeVar

from sqlalchemy import BigInteger, TypeDecorator

from laurels.boards.board import Board
from laurels.boards.definition import BoardDefinition, parse_definition
from laurels.boards.definition import Window as BoardWindow
from laurels.boards.keys import BoardRef, Cut
from laurels.index.positions import OnUpdate, PositionRule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Column, Table
    from sqlalchemy.types import TypeEngine

    from laurels.index.members import MemberCodec
    from laurels.index.positions import Position

Model = TypeVar("Model")

Aggregate = Literal["best", "last", "sum", "first"]
Ties = Literal["member", "shared", "earliest"]
WindowName = Literal["hourly", "daily", "weekly", "monthly", "yearly", "all_time"]
WindowSpec: TypeAlias = WindowName | timedelta | str
"""`rolling_7d` is the last seven days."""
Keep: TypeAlias = int | Mapping[str, int | None] | None

# In seconds, without a timezone. A month is 30 days: windows are numbered by floor(unix time / length).
LENGTHS: Final[dict[str, int]] = {"hourly": 3600, "daily": 86_400, "weekly": 604_800, "monthly": 2_592_000}
CALENDAR: Final = ("hourly", "daily", "weekly", "monthly", "yearly")
ROLLING: Final = re.compile(r"rolling_([1-9]\d{0,2})d")
LONGEST_NAME: Final = 64


@dataclass(frozen=True)
class LeaderboardIndex:
    """One leaderboard over the records of a model. Names columns by their attribute or by their own name.

    Records without a score, a member, or a value in one of the groups, are left out.
    """

    score: str
    """An integer column, up to the whole range of a bigint."""
    _: KW_ONLY
    member: str | None = None
    """The column that says who is ranked: all records of a member become one entry. Without it, each record
    is ranked.
    """
    aggregate: Aggregate | None = None
    """With `member`: which of a member's records makes the entry of a window (the default is `best`), or
    their `sum`.
    """
    group_by: Sequence[str] = ()
    """Levels of groups, the coarsest first. Entries are ranked overall and in their group at each level."""
    window: WindowSpec | None = None
    """By default `daily`."""
    windows: Sequence[WindowSpec] = ()
    """Several windows, instead of `window`. Queries read the first, unless they name another `period`."""
    keep: Keep = 7
    """How many windows can be asked for, the current one included; None keeps all. Or for each window by
    name.
    """
    timezone: str | None = None
    """Where days begin: windows are then those of the calendar. Without it, the four documented windows have
    fixed lengths, and their numbers are floor(unix time / length).
    """
    ties: Ties = "member"
    """Equal scores: by key, unique (`member`); on one rank (`shared`); the first to reach it, unique
    (`earliest`).
    """
    dense: bool = False
    """Whether `dense_rank` can be asked for. It takes more memory for each distinct score."""
    name: str | None = None
    """The name of the index; by default that of the score."""
    at: str | None = None
    """A timestamp column that decides the window; by default the moment of the write does."""
    on_update: OnUpdate = "move"
    """What an update does to an entry in an earlier window: `move` moves it, `keep` leaves it there."""
    order: Literal["desc", "asc"] = "desc"
    """`asc`: the smallest score is best."""

    @property
    def label(self) -> str:
        return self.name or self.score

    @property
    def all_windows(self) -> tuple[WindowSpec, ...]:
        return tuple(self.windows) or ("daily" if self.window is None else self.window,)

    def kept(self, window: WindowSpec) -> int | None:
        if window == "all_time":
            return None
        if isinstance(self.keep, Mapping):
            return self.keep.get(name_of(window), 7)
        return self.keep


def name_of(window: WindowSpec) -> str:
    """What `period` takes for a declared window."""
    return f"every_{int(window.total_seconds())}s" if isinstance(window, timedelta) else window


@dataclass(frozen=True, eq=False)
class DeclaredIndex(Generic[Model]):
    """An index with its model and its columns."""

    model: type[Model]
    index: LeaderboardIndex
    table: Table
    key: tuple[Column[Any], ...]
    score: Column[Any]
    groups: tuple[Column[Any], ...]
    at: Column[Any] | None
    keys: MemberCodec
    """Of the primary key."""
    member: Column[Any] | None
    members: MemberCodec
    """Of whom the board ranks: of `member`, or else of the primary key."""

    @property
    def label(self) -> str:
        return self.index.label

    @cached_property
    def name(self) -> str:
        """Its name in the database: `game_scores.score`, after the schema if the table has one."""
        return f"{self.table.fullname}.{self.label}"

    @cached_property
    def aggregate(self) -> Aggregate:
        return self.index.aggregate or ("last" if self.member is None else "best")

    @cached_property
    def rule(self) -> PositionRule:
        return PositionRule(self._resolver, self.index.on_update)

    @cached_property
    def is_computed(self) -> bool:
        """Whether a record's places follow from its row. If not, the moments of its writes are stored."""
        is_timeless = (
            all(each == "all_time" for each in self.index.all_windows)
            and self.index.ties != "earliest"
            and not (self.member is not None and self.aggregate in ("first", "last"))
        )
        return self.index.on_update == "move" and (self.at is not None or is_timeless)

    def is_stored(self, stored: Position, position: Position) -> bool:
        """Whether what is stored of a record says that it has this position."""
        if self.index.on_update == "keep":
            return stored == position
        return [each.moment for each in stored] == [each.moment for each in position]

    @cached_property
    def dimensions(self) -> tuple[str, ...]:
        return tuple(self.index.group_by)

    def ref(self, project: str) -> BoardRef:
        """The board of the index: its name, in characters that board ids may have."""
        return board_of(self.name, project)

    @cached_property
    def definition(self) -> BoardDefinition:
        """The board that holds the index."""
        levels = range(1, len(self.dimensions) + 1)
        return parse_definition(
            {
                "aggregate": self.aggregate,
                "order": self.index.order,
                "score": self._kind,
                "ties": self.index.ties,
                "dense": self.index.dense,
                "windows": [self._board_window(window) for window in self.index.all_windows],
                "timezone": self.index.timezone or "UTC",
                "groups": [self.dimensions[:depth] for depth in levels],
                "archive": {"journal": False},
            }
        )

    @cached_property
    def periods(self) -> dict[str, BoardWindow]:
        """The board's windows by the name that they are declared with."""
        names = map(name_of, self.index.all_windows)
        return dict(zip(names, self.definition.windows, strict=True))

    @property
    def _kind(self) -> Literal["number", "int64"]:
        """Doubles hold every 32-bit integer, and take one key in Valkey less."""
        is_wide = isinstance(plain_type(self.score.type), BigInteger)
        return "int64" if is_wide or self.aggregate == "sum" else "number"

    def _board_window(self, window: WindowSpec) -> dict[str, object]:
        kept: dict[str, object] = {} if window == "all_time" else {"keep": self.index.kept(window)}
        if isinstance(window, timedelta):
            return {"period": "every", "seconds": int(window.total_seconds()), **kept}
        if rolling := ROLLING.fullmatch(window):
            return {"period": "rolling", "days": int(rolling[1]), **kept}
        if self.index.timezone is None and window in LENGTHS:
            return {"period": "every", "seconds": LENGTHS[window], **kept}
        return {"period": window, **kept}

    @cached_property
    def _resolver(self) -> Board:
        """Finds windows; no key of it is ever written."""
        return Board(BoardRef("index", "unnamed"), self.definition, 0, cluster=False)

    def cut(self, groups: tuple[str, ...]) -> Cut:
        return Cut(self.dimensions[: len(groups)], groups)

    @cached_property
    def fingerprint(self) -> str:
        """A digest of everything that its entries depend on. When it changes, the index is rebuilt."""
        columns = (*self.key, self.score, self.member, *self.groups, self.at)
        parts = (
            *(None if column is None else column.name for column in columns),
            len(self.groups),
            *self.dimensions,
            *((name_of(window), self.index.kept(window)) for window in self.index.all_windows),
            self.index.timezone,
            self.index.dense,
            self.aggregate,
            self.index.ties,
            self._kind,
            self.index.on_update,
            self.index.order,
        )
        return digest(repr(parts))


def board_of(name: str, project: str) -> BoardRef:
    """The board of the index with this name."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "-", name)
    if plain != name or len(plain) > LONGEST_NAME:
        plain = f"{plain[: LONGEST_NAME - 9]}.{digest(name)[:8]}"
    return BoardRef.parse(f"{project}/{plain}")


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def plain_type(kind: TypeEngine[Any]) -> TypeEngine[Any]:
    """The database's type, without the decorators of SQLAlchemy around it."""
    while isinstance(kind, TypeDecorator):
        kind = kind.impl_instance
    return kind
