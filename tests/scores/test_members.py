from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from topologies import on_node

from laurels.errors import InvalidInput
from laurels.scores.submission import Submission

if TYPE_CHECKING:
    from raw_valkey import RawValkey

    from laurels.sync import Laurels

NewBoard = Callable[..., str]
LAYOUTS: list[dict[str, Any]] = [{}, {"score": "int64"}, {"ties": "earliest"}, {"ties": "member"}]

NAMES = [
    "a",
    "A",
    "a ",
    " a",
    "a\n",
    "\n",
    "\0",
    "\0\0",
    "a\0b",
    "{a}",
    "}{",
    "a/b",
    "../..",
    "a:b",
    "lb:{x}:daily",
    "a|prefixes",
    "a,b=c",
    "%",
    "%25",
    "%2C",
    "é",
    "e\u0301",
    "🏆",
    "🏳️‍🌈",
    "\u202e",
    "\uffff",
    "\U0010ffff",
    "0",
    "-1",
    "nan",
    "inf",
    "+",
    "-",
    "(",
    "[",
    "\x7f",
    "\x80",
    "x" * 256,
    "é" * 128,
    "🏆" * 64,
]
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
fuzzing = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


class TestMembers:
    @pytest.mark.parametrize("layout", LAYOUTS)
    def test_any_characters_are_a_member_of_their_own(
        self, engine: Laurels, new_board: NewBoard, layout: dict[str, Any]
    ):
        board = new_board(dense=True, **layout)
        batch = [Submission(name, number) for number, name in enumerate(NAMES)]
        assert engine.submit_many(board, batch).rejected == []
        page = engine.page(board, limit=100)
        assert {entry.member: entry.score for entry in page.entries} == {
            name: number for number, name in enumerate(NAMES)
        }
        for number, name in enumerate(NAMES):
            stood = engine.standing(board, name)
            assert (stood.member, stood.score, stood.rank) == (name, number, len(NAMES) - number)
        found = engine.among(board, NAMES)
        assert [friend.member for friend in found.entries] == NAMES[::-1]
        assert all(engine.remove(board, name) for name in NAMES)
        assert engine.page(board).total == 0

    @fuzzing
    @given(names=st.lists(texts, min_size=1, max_size=15, unique=True))
    @on_node
    def test_equal_scores_are_listed_by_their_bytes(
        self, engine: Laurels, new_board: NewBoard, names: list[str]
    ):
        for layout, reverse in (({}, True), ({"score": "int64"}, True), ({"ties": "member"}, False)):
            board = new_board(**layout)
            for name in names:
                engine.submit(board, name, 1)
            listed: list[str] = []
            page = engine.page(board, limit=4)
            while True:
                listed += [entry.member for entry in page.entries]
                if page.next is None:
                    break
                page = engine.page(board, limit=4, cursor=page.next)
            assert listed == sorted(names, key=str.encode, reverse=reverse)

    @pytest.mark.parametrize("name", ["x" * 257, "é" * 128 + "a", "🏆" * 64 + "a", "", "\ud800", "a\udfff"])
    def test_more_than_256_bytes_or_none_or_no_text_is_refused(
        self, engine: Laurels, new_board: NewBoard, name: str
    ):
        board = new_board()
        asks: list[Callable[[], object]] = [
            lambda: engine.submit(board, name, 1),
            lambda: engine.standing(board, name),
            lambda: engine.around(board, name),
            lambda: engine.among(board, ["ada", name]),
            lambda: engine.remove(board, name),
        ]
        for ask in asks:
            with pytest.raises(InvalidInput) as refused:
                ask()
            assert [field.field for field in refused.value.fields] == ["member"]
        assert [rejected.index for rejected in engine.submit_many(board, [Submission(name, 1)]).rejected] == [
            0
        ]

    @pytest.mark.parametrize("name", [None, 5, b"ada", ["ada"]])
    @on_node
    def test_what_is_no_string_is_refused(self, engine: Laurels, new_board: NewBoard, name: Any):  # noqa: ANN401  # anything
        board = new_board()
        with pytest.raises(InvalidInput, match="member: must be a string"):
            engine.submit(board, name, 1)


class TestGroups:
    def test_any_characters_are_a_group_of_their_own(self, engine: Laurels, new_board: NewBoard):
        board = new_board(groups=[["g"], ["g", "h"]])
        for number, name in enumerate(NAMES):
            engine.submit(board, f"m{number}", 1, groups={"g": name, "h": NAMES[-1 - number]})
        for number, name in enumerate(NAMES):
            for group in (f"g={_escaped(name)}", f"h={_escaped(NAMES[-1 - number])},g={_escaped(name)}"):
                assert [entry.member for entry in engine.page(board, group=group).entries] == [f"m{number}"]
        assert engine.page(board).total == len(NAMES)

    @fuzzing
    @given(values=st.lists(st.tuples(texts, texts), min_size=1, max_size=6, unique=True))
    @on_node
    def test_they_never_collide_and_stay_within_their_board(
        self, engine: Laurels, new_board: NewBoard, raw: RawValkey, values: list[tuple[str, str]]
    ):
        board = new_board(groups=[["g", "h"]], archive={"journal": False})
        for number, (g, h) in enumerate(values):
            engine.submit(board, f"m{number}", 1, groups={"g": g, "h": h})
        for number, (g, h) in enumerate(values):
            page = engine.page(board, group=f"g={_escaped(g)},h={_escaped(h)}")
            assert [entry.member for entry in page.entries] == [f"m{number}"]
        assert all(key.startswith(f"lb:{{{board}}}:".encode()) for key in raw.keys(board))
        engine.drop(board, allow_drop="all")
        assert raw.keys(board) == []

    @pytest.mark.parametrize("value", ["x" * 257, "", "\ud800"])
    @on_node
    def test_more_than_256_bytes_or_none_or_no_text_is_refused(
        self, engine: Laurels, new_board: NewBoard, value: str
    ):
        board = new_board(groups=[["g"]])
        with pytest.raises(InvalidInput) as refused:
            engine.submit(board, "ada", 1, groups={"g": value})
        assert [field.field for field in refused.value.fields] == ["groups.g"]
        assert engine.page(board).total == 0

    @pytest.mark.parametrize("value", [5, None, ["x"]])
    @on_node
    def test_what_is_no_string_is_refused(self, engine: Laurels, new_board: NewBoard, value: Any):  # noqa: ANN401  # anything
        board = new_board(groups=[["g"]])
        with pytest.raises(InvalidInput, match=r"groups\.g: must be a string"):
            engine.submit(board, "ada", 1, groups={"g": value})

    def test_who_names_only_some_dimensions_is_in_the_groups_of_those(
        self, engine: Laurels, new_board: NewBoard
    ):
        board = new_board(groups=[["region"], ["region", "city"]])
        engine.submit(board, "ada", 1, groups={"region": "asia"})
        engine.submit(board, "bob", 2, groups={"city": "tokyo", "region": "asia"})
        engine.submit(board, "cid", 3, groups={})
        assert [entry.member for entry in engine.page(board, group="region=asia").entries] == ["bob", "ada"]
        in_tokyo = engine.page(board, group="region=asia,city=tokyo")
        assert [entry.member for entry in in_tokyo.entries] == ["bob"]
        assert engine.page(board).total == 3


def _escaped(value: str) -> str:
    return "".join(f"%{byte:02X}" for byte in value.encode())
