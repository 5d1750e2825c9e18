"""Declarations: their boards, and errors where the class is defined."""

from __future__ import annotations

from datetime import date, timedelta  # SQLAlchemy reads the annotations
from typing import TYPE_CHECKING, Any
from uuid import UUID  # noqa: TC003  # as above

import pytest
from index_models import new_base, new_table, score_model
from sqlalchemy import CHAR, BigInteger, Boolean, DateTime, Float, Integer, Numeric, String, TypeDecorator
from sqlalchemy import Enum as SQLEnum
from sqlalchemy.orm import Mapped, declared_attr, mapped_column
from sqlmodel import Field, SQLModel

from laurels.errors import InvalidInput
from laurels.index import LeaderboardIndex, Ranking, leaderboard
from laurels.index.declare import declared, declared_as, models_of
from laurels.index.positions import Placement

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy.types import TypeEngine

    from laurels.index.declare import WindowName


def test_an_index_is_a_board_of_fixed_windows_with_each_level_of_groups():
    model = score_model(group_by=["region", "city"], window="daily", keep=7)
    (index,) = declared(model)
    definition = index.definition
    assert (definition.score, definition.ties, definition.order) == ("int64", "member", "desc")
    assert definition.groups == (("region",), ("region", "city"))
    assert [(each.seconds, each.keep) for each in definition.windows] == [(86_400, 7)]
    assert not definition.archive.journal
    assert str(index.ref("index")) == f"index/{model.__tablename__}.score"


@pytest.mark.parametrize(
    ("window", "seconds"),
    [
        ("hourly", 3600),
        ("daily", 86_400),
        ("weekly", 604_800),
        ("monthly", 2_592_000),
        (timedelta(minutes=15), 900),
    ],
)
def test_windows_have_the_documented_lengths(window: WindowName | timedelta, seconds: int):
    (index,) = declared(score_model(window=window))
    assert [each.seconds for each in index.definition.windows] == [seconds]


def test_the_documented_window_has_the_documented_number():
    (index,) = declared(score_model(window="daily"))
    found = index.rule.windows((Placement(1_706_443_200 * 1_000_000, 1, ()),), 0)
    assert [address.slot for address in found] == ["19750"]


WRONG: dict[str, tuple[dict[str, Any], str, str]] = {
    "no such score": ({"score": "points"}, "score", "has no column 'points'; it has: id, region, city"),
    "no such group": ({"group_by": ["country"]}, "group_by", "has no column 'country'"),
    "a text as groups": ({"group_by": "region"}, "group_by", "must be a list: write ['region']"),
    "a group twice": ({"group_by": ["region", "region"]}, "group_by", "each once"),
    "a text as score": ({"score": "region", "name": "r"}, "score", "scores are 64-bit integers"),
    "an unknown window": (
        {"window": "dayly"}, "window",
        "must be hourly, daily, weekly, monthly, yearly, all_time, rolling_7d (any number of days) or",
    ),
    "a window that is misspelt": ({"windows": ["daily", "wekly"]}, "windows", "did you mean weekly?"),
    "windows as a text": ({"windows": "daily"}, "windows", "must be a list: write ['daily']"),
    "two ways to say which windows": ({"window": "daily", "windows": ["weekly"]}, "windows", "either"),
    "a window twice": ({"windows": ["daily", "daily"]}, "windows", "each window once"),
    "rolling for no days": ({"window": "rolling_0d"}, "window", "rolling_7d"),
    "keep of another window": ({"windows": ["daily"], "keep": {"weekly": 3}}, "keep", "no window 'weekly'"),
    "a window is kept for nothing": ({"windows": ["daily"], "keep": {"daily": 0}}, "keep['daily']", "from 1"),
    "no such timezone": ({"timezone": "Europe/Berln"}, "", "did you mean Europe/Berlin?"),
    "unknown ties": ({"ties": "dense"}, "ties", "must be member, shared or earliest, not 'dense'"),
    "no such member": ({"member": "playr"}, "member", "did you mean player?"),
    "a timestamp as member": ({"member": "seen"}, "member", "an index takes integers"),
    "an unknown aggregate": ({"member": "level", "aggregate": "max"}, "aggregate", "must be best, last, sum"),
    "an aggregate of nobody": ({"aggregate": "sum"}, "aggregate", "needs `member`"),
    "members that are kept": ({"member": "level", "on_update": "keep"}, "on_update", "leave it out"),
    "a kept rolling window": ({"window": "rolling_7d", "on_update": "keep"}, "on_update", "needs 'move'"),
    "a window of nothing": ({"window": timedelta(0)}, "window", "must be whole seconds"),
    "half a second": ({"window": timedelta(seconds=1.5)}, "window", "must be whole seconds"),
    "keep nothing": ({"keep": 0}, "keep", "from 1 on, or None, not 0"),
    "keep true": ({"keep": True}, "keep", "from 1 on, or None, not True"),
    "an unknown order": ({"order": "up"}, "order", "must be desc or asc, not 'up'"),
    "an unknown on_update": ({"on_update": "stay"}, "on_update", "must be move or keep, not 'stay'"),
    "a timestamp as group": ({"group_by": ["seen"]}, "group_by", "groups are text, enums, integers"),
    "no such timestamp": ({"at": "played_at"}, "at", "has no column 'played_at'"),
    "a number as timestamp": ({"at": "level"}, "at", "use DateTime(timezone=True)"),
    "a name with a slash": ({"name": "a/b"}, "name", "is not 1 to 64 of"),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_declaration_fails_at_its_class_and_says_what_to_do(what: str):
    fields, field, says = WRONG[what]
    with pytest.raises(InvalidInput) as raised:
        score_model(**fields)
    label = fields.get("name") or fields.get("score") or "score"
    where = f"GameScore.__leaderboards__[0] ({label})"
    assert raised.value.fields[0].field == (f"{where}.{field}" if field else where)
    assert says in raised.value.detail


@pytest.mark.parametrize("kind", [Float(), Numeric(10, 0), Boolean()], ids=repr)
def test_scores_that_are_no_integers_are_refused(kind: TypeEngine[Any]):
    with pytest.raises(InvalidInput, match="count in the smallest unit"):

        class Run(new_base()):  # pyright: ignore[reportUnusedClass]  # its definition fails
            __tablename__ = new_table()
            __leaderboards__ = (LeaderboardIndex(score="time"),)
            id: Mapped[int] = mapped_column(primary_key=True)
            time: Mapped[Any] = mapped_column(kind)


@pytest.mark.parametrize(
    "kind", [Float(), DateTime(), SQLEnum("red", "green", name="colour"), CHAR(3)], ids=repr
)
def test_keys_that_have_no_order_as_text_are_refused(kind: TypeEngine[Any]):
    with pytest.raises(InvalidInput, match="an index takes integers, text, UUIDs and dates"):

        class Run(new_base()):  # pyright: ignore[reportUnusedClass]  # its definition fails
            __tablename__ = new_table()
            __leaderboards__ = (LeaderboardIndex(score="time"),)
            id: Mapped[Any] = mapped_column(kind, primary_key=True)
            time: Mapped[int]


def test_two_indexes_of_one_name_are_refused():
    with pytest.raises(InvalidInput, match=r"two indexes have the name 'time'; give one another `name`"):

        class Run(new_base()):  # pyright: ignore[reportUnusedClass]  # its definition fails
            __tablename__ = new_table()
            __leaderboards__ = (LeaderboardIndex(score="time"), LeaderboardIndex(score="time", order="asc"))
            id: Mapped[int] = mapped_column(primary_key=True)
            time: Mapped[int]


@pytest.mark.parametrize("given", [LeaderboardIndex(score="time"), ["time"]])
def test_anything_but_a_list_of_indexes_is_refused(given: object):
    with pytest.raises(InvalidInput, match="LeaderboardIndex"):

        class Run(new_base()):  # pyright: ignore[reportUnusedClass]  # its definition fails
            __tablename__ = new_table()
            __leaderboards__ = given
            id: Mapped[int] = mapped_column(primary_key=True)
            time: Mapped[int]


def test_columns_are_found_by_their_attributes_and_by_their_own_names():
    class Run(new_base()):
        __tablename__ = new_table()
        __leaderboards__ = (
            LeaderboardIndex(score="points", name="by_attribute"),
            LeaderboardIndex(score="pts", name="by_column"),
        )
        id: Mapped[int] = mapped_column(primary_key=True)
        points: Mapped[int] = mapped_column("pts", Integer)

    assert [index.score.name for index in declared(Run)] == ["pts", "pts"]
    assert declared_as(Run, "by_column").label == "by_column"
    with pytest.raises(InvalidInput, match="in several: name one of 'by_attribute', 'by_column'"):
        declared_as(Run, Run.points)
    with pytest.raises(InvalidInput, match="has several: name one of by_attribute, by_column"):
        declared_as(Run, None)
    with pytest.raises(InvalidInput, match="has no index 'score'; it has: by_attribute, by_column"):
        declared_as(Run, "score")


def test_a_mixin_declares_for_every_model_that_has_it_and_a_base_finds_them():
    base = new_base()

    class Scored:
        __leaderboards__ = (LeaderboardIndex(score="score"),)
        score: Mapped[int] = mapped_column(BigInteger)

        @declared_attr.directive
        @classmethod
        def __tablename__(cls) -> str:
            return new_table()

    class Chess(Scored, base):
        id: Mapped[int] = mapped_column(primary_key=True)

    class Go(Scored, base):
        id: Mapped[int] = mapped_column(primary_key=True)

    class Plain(base):
        __tablename__ = new_table()
        id: Mapped[int] = mapped_column(primary_key=True)

    with pytest.raises(InvalidInput, match="Plain declares no leaderboard"):
        models_of([Plain])
    assert models_of(base) == models_of(base.metadata) == [Chess, Go]
    assert models_of([Go], Chess) == [Go, Chess]
    assert declared(Chess)[0].name != declared(Go)[0].name


def test_sqlmodel_models_declare_in_the_same_way():
    class Hero(SQLModel, table=True):
        __tablename__ = new_table()  # pyright: ignore[reportAssignmentType]  # SQLModel's own annotation
        __leaderboards__ = [LeaderboardIndex(score="power", group_by=["team"])]  # as users write it
        id: UUID = Field(primary_key=True)
        team: str
        power: int = Field(sa_type=BigInteger)

    (index,) = declared(Hero)
    assert index.members.kinds == ("uuid",)
    with pytest.raises(InvalidInput, match=r"Villain.__leaderboards__\[0\] \(evil\).score"):

        class Villain(SQLModel, table=True):  # pyright: ignore[reportUnusedClass]  # its definition fails
            __tablename__ = new_table()  # pyright: ignore[reportAssignmentType]  # as above
            __leaderboards__ = [LeaderboardIndex(score="evil")]  # as above
            id: int = Field(primary_key=True)


def test_custom_types_count_as_their_database_types():
    class Points(TypeDecorator[int]):
        impl = BigInteger
        cache_ok = True

    class Run(new_base()):
        __tablename__ = new_table()
        __leaderboards__ = (LeaderboardIndex(score="points"),)
        id: Mapped[str] = mapped_column(String(20), primary_key=True)
        day: Mapped[date] = mapped_column(primary_key=True)
        points: Mapped[int] = mapped_column(Points)

    assert declared(Run)[0].members.kinds == ("text", "date")


def test_long_and_odd_table_names_make_a_board_all_the_same():
    class Run(new_base()):
        __tablename__ = "punkte über " + "alles" * 8
        __leaderboards__ = (LeaderboardIndex(score="points"),)
        id: Mapped[int] = mapped_column(primary_key=True)
        points: Mapped[int]

    board = declared(Run)[0].ref("index").board
    assert len(board) <= 64
    assert board.startswith("punkte--ber-alles")


@pytest.mark.parametrize("ask", [leaderboard, Ranking])
async def test_reading_without_a_declaration_or_open_indexes_says_what_to_do(
    ask: Callable[[type[Any]], Ranking[Any]],
):
    with pytest.raises(InvalidInput, match="declares no leaderboard"):
        _ = ask(str).declared
    with pytest.raises(InvalidInput, match="no Indexes are open for GameScore"):
        await ask(score_model()).top(1)


@pytest.mark.parametrize("name", ["__leaderboard__", "__leader_boards__", "__leaderbords__"])
def test_a_misspelt_declaration_is_caught(name: str):
    with pytest.raises(InvalidInput, match=f"Run.{name}: declares nothing; did you mean __leaderboards__"):
        type(
            "Run",
            (new_base(),),
            {
                "__tablename__": new_table(),
                "__annotations__": {"id": Mapped[int]},
                "id": mapped_column(primary_key=True),
                name: [LeaderboardIndex(score="id")],
            },
        )


def test_windows_of_the_calendar_have_a_timezone_and_the_four_documented_ones_are_fixed_without():
    names = ["hourly", "daily", "weekly", "monthly", "yearly", "all_time", "rolling_7d", timedelta(minutes=5)]
    keep = {"daily": 30, "every_300s": None}
    (index,) = declared(score_model(windows=names, keep=keep))
    assert [(each.label, each.keep) for each in index.definition.windows] == [
        ("every_3600s", 7), ("every_86400s", 30), ("every_604800s", 7), ("every_2592000s", 7),
        ("yearly", 7), ("all_time", None), ("rolling_7d", 7), ("every_300s", None),
    ]  # fmt: skip
    (index,) = declared(score_model(windows=names, timezone="Asia/Tokyo"))
    assert [each.label for each in index.definition.windows][:5] == [
        "hourly", "daily", "weekly", "monthly", "yearly",
    ]  # fmt: skip
    assert index.definition.timezone == "Asia/Tokyo"


def test_narrow_scores_are_doubles_and_wide_ones_and_sums_64_bit_integers():
    def kind_of(column: TypeEngine[Any], **fields: Any) -> str:  # noqa: ANN401  # of a LeaderboardIndex
        class Run(new_base()):
            __tablename__ = new_table()
            __leaderboards__ = (LeaderboardIndex(score="points", **fields),)
            id: Mapped[int] = mapped_column(primary_key=True)
            runner: Mapped[str]
            points: Mapped[int] = mapped_column(column)

        return declared(Run)[0].definition.score

    assert (kind_of(Integer()), kind_of(BigInteger())) == ("number", "int64")
    assert kind_of(Integer(), member="runner") == "number"
    assert kind_of(Integer(), member="runner", aggregate="sum") == "int64"


def test_what_is_stored_of_a_record_is_what_its_row_does_not_say():
    def is_computed(**fields: Any) -> bool:  # noqa: ANN401  # as above
        return declared(score_model(**fields))[0].is_computed

    assert is_computed(at="seen")
    assert is_computed(window="all_time")
    assert is_computed(window="all_time", member="level", aggregate="best")
    assert not is_computed()
    assert not is_computed(windows=["all_time", "daily"])
    assert not is_computed(window="all_time", ties="earliest")
    assert not is_computed(window="all_time", member="level", aggregate="last")
    assert not is_computed(at="seen", on_update="keep")
