from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.crc import key_slot

from laurels.boards.board import Board, WindowAddress
from laurels.boards.definition import BoardDefinition, Window, parse_definition
from laurels.boards.keys import WHOLE, BoardRef, Cut, KeySpace, parse_cut
from laurels.boards.windows import Calendar
from laurels.errors import InvalidInput
from laurels.moments import moment_of

FRIDAY = moment_of(datetime(2025, 10, 24, 13, 30, tzinfo=UTC))
FRAMEDLE = moment_of(datetime(2025, 2, 22, 12, tzinfo=UTC))
ALL_PERIODS: list[dict[str, Any]] = [
    {"period": "hourly"},
    {"period": "daily"},
    {"period": "weekly"},
    {"period": "monthly"},
    {"period": "yearly"},
    {"period": "all_time"},
    {"period": "rolling", "days": 7},
    {"period": "every", "seconds": 86_400},
]
# Any characters that UTF-8 can carry.
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


def board(ref: str = "arcade/race", *, cluster: bool = False, **definition: object) -> Board:
    return Board(BoardRef.parse(ref), parse_definition(definition), 1, cluster=cluster)


def key(of: Board, label: str, cut: Cut = WHOLE, moment: int = FRIDAY, shard: int = 0) -> str:
    slot = of.zoned_window(label, cut).calendar.at(moment)
    return of.window_key(shard, WindowAddress(label, slot.text, cut))


class TestOwnLayout:
    @pytest.mark.parametrize(
        ("label", "expected"),
        [
            ("hourly", "lb:{arcade/race}:hourly:2025-10-24T13"),
            ("daily", "lb:{arcade/race}:daily:2025-10-24"),
            ("weekly", "lb:{arcade/race}:weekly:2025-w43"),
            ("monthly", "lb:{arcade/race}:monthly:2025-10"),
            ("yearly", "lb:{arcade/race}:yearly:2025"),
            ("all_time", "lb:{arcade/race}:all_time"),
            ("rolling_7d", "lb:{arcade/race}:rolling_7d:2025-10-24"),
            ("every_86400s", "lb:{arcade/race}:every_86400s:20385"),
        ],
    )
    @pytest.mark.parametrize("cluster", [False, True])
    def test_every_period_has_exactly_its_documented_key(self, label: str, expected: str, cluster: bool):  # noqa: FBT001
        assert key(board(windows=ALL_PERIODS, cluster=cluster), label) == expected

    def test_the_window_id_of_the_index_document_is_its_key(self):
        of = board(windows=[{"period": "every", "seconds": 86_400}])
        assert key(of, "every_86400s", moment=1_706_443_200_000_000) == "lb:{arcade/race}:every_86400s:19750"

    def test_groups_are_appended(self):
        of = board(windows=ALL_PERIODS, groups=[["country"], ["region", "city"]])
        brazil, tokyo = Cut(("country",), ("BR",)), Cut(("region", "city"), ("asia", "tokyo"))
        assert key(of, "daily", brazil) == "lb:{arcade/race}:daily:2025-10-24:country=BR"
        assert key(of, "all_time", tokyo) == "lb:{arcade/race}:all_time:region=asia,city=tokyo"

    def test_further_keys_of_a_window_have_suffixes(self):
        definition = BoardDefinition(score="int64", dense=True)
        parts = KeySpace(BoardRef("p", "b"), definition, cluster=False).parts("w", metadata=True)
        assert parts == ("w", "w|prefixes", "w|metadata", "w|scores", "w|counts")
        plain = KeySpace(BoardRef("p", "b"), BoardDefinition(), cluster=False)
        assert plain.parts("w", metadata=False) == ("w",)

    def test_shards_have_hash_tags_of_their_own(self):
        of = board(shards=3, windows=[{"period": "daily"}])
        assert [key(of, "daily", shard=shard) for shard in range(3)] == [
            f"lb:{{arcade/race/{shard}}}:daily:2025-10-24" for shard in range(3)
        ]

    @pytest.mark.parametrize("name", ["board", "journal", "windows", "ids", "calls", "cuts", "built"])
    def test_no_window_can_have_the_name_of_a_key_of_the_board(self, name: str):
        with pytest.raises(InvalidInput, match=name):
            board(windows=[{"period": "all_time", "name": name}])


class TestGroups:
    @given(st.tuples(texts, texts), st.tuples(texts, texts))
    def test_different_groups_have_different_keys(self, left: tuple[str, str], right: tuple[str, str]):
        of = board(groups=[["region", "city"]])
        keys = {key(of, "all_time", Cut(("region", "city"), values)) for values in (left, right)}
        assert (len(keys) == 1) == (left == right)

    @given(texts, texts)
    def test_a_group_of_one_dimension_is_never_one_of_two(self, one: str, two: str):
        of = board(groups=[["region"], ["region", "city"]])
        single = key(of, "all_time", Cut(("region",), (one,)))
        assert single != key(of, "all_time", Cut(("region", "city"), (one, two)))
        assert single != key(of, "all_time", Cut(("region",), (f"{one},city={two}",)))

    @given(texts)
    def test_a_groups_value_is_no_part_of_a_window(self, value: str):
        of = board(groups=[["region"]], windows=ALL_PERIODS)
        rendered = key(of, "all_time", Cut(("region",), (value,)))
        assert not any(mark in rendered.partition("=")[2] for mark in ":=,{}|\n\0")

    @given(st.tuples(texts, texts))
    def test_a_group_is_read_as_it_is_written(self, values: tuple[str, str]):
        definition = BoardDefinition(groups=(("region", "city"),))
        cut = Cut(("region", "city"), values)
        assert parse_cut(str(cut), definition) == cut

    def test_dimensions_may_be_asked_for_in_any_order(self):
        definition = BoardDefinition(groups=(("region", "city"),))
        assert parse_cut("city=tokyo,region=asia", definition) == Cut(("region", "city"), ("asia", "tokyo"))

    @pytest.mark.parametrize(
        "text",
        ["country", "country=BR,country=US", "planet=mars", "region=asia", "country=%FF", "country=\ud800"],
    )
    def test_a_group_that_the_board_does_not_have_is_refused(self, text: str):
        definition = BoardDefinition(groups=(("country",), ("region", "city")))
        with pytest.raises(InvalidInput) as refused:
            parse_cut(text, definition)
        assert [field.field for field in refused.value.fields] == ["group"]


class TestTheDocumentedNames:
    PROJECT_KEYS: dict[str, Any] = {  # noqa: RUF012
        "windows": [{"period": each} for each in ("weekly", "monthly", "yearly", "all_time")],
        "keys": {
            "weekly": "leaderboard:{project}:weekly:{slot}",
            "monthly": "leaderboard:{project}:monthly:{slot}",
            "yearly": "leaderboard:{project}:yearly:{slot}",
            "all_time": "leaderboard:{project}:all_time",
        },
    }

    @pytest.mark.parametrize("project", ["1", "global"])
    def test_project_keys_and_snapshots(self, project: str):
        of = board(f"{project}/score", **self.PROJECT_KEYS)
        assert [key(of, label) for label in ("weekly", "monthly", "yearly", "all_time")] == [
            f"leaderboard:{project}:weekly:2025-w43",
            f"leaderboard:{project}:monthly:2025-10",
            f"leaderboard:{project}:yearly:2025",
            f"leaderboard:{project}:all_time",
        ]

    def test_framedle(self):
        of = board(
            "framedle/daily_frame",
            windows=[{"period": "daily"}, {"period": "weekly", "sum_of": "daily"}],
            groups=[["country"]],
            keys={
                "daily": "lb:{board}:{slot}",
                "weekly": "lb:{board}:week:{yyyy}-W{ww}",
                "daily:country": "lb:{board}:{slot}:country:{group.country}",
            },
        )
        assert key(of, "daily", moment=FRAMEDLE) == "lb:daily_frame:2025-02-22"
        assert key(of, "weekly", moment=FRAMEDLE) == "lb:daily_frame:week:2025-W08"
        brazil = Cut(("country",), ("BR",))
        assert key(of, "daily", brazil, FRAMEDLE) == "lb:daily_frame:2025-02-22:country:BR"
        assert key(board("framedle/xp", keys={"all_time": "lb:alltime:xp"}), "all_time") == "lb:alltime:xp"
        assert key(board("framedle/elo", keys={"all_time": "lb:duels:elo"}), "all_time") == "lb:duels:elo"

    def test_leaders(self):
        of = board(
            "pacman/highscore",
            windows=[{"period": each} for each in ("daily", "weekly", "monthly", "all_time")],
            keys={
                "daily": "/leaders/{project}/{board}/d/{yyyymmdd}",
                "weekly": "/leaders/{project}/{board}/w/{yyyyww}",
                "monthly": "/leaders/{project}/{board}/m/{yyyymm}",
                "all_time": "/leaders/{project}/{board}/a/a",
            },
        )
        assert [key(of, label) for label in ("daily", "weekly", "monthly", "all_time")] == [
            "/leaders/pacman/highscore/d/20251024",
            "/leaders/pacman/highscore/w/202543",
            "/leaders/pacman/highscore/m/202510",
            "/leaders/pacman/highscore/a/a",
        ]

    def test_campus(self):
        of = board(
            "campus/overall",
            windows=[{"period": "daily"}],
            groups=[["campus"]],
            keys={
                "daily": "lb:z:{board}:daily:{yyyymmdd}",
                "daily:campus": "lb:z:{board}:daily:{group.campus}:{yyyymmdd}",
            },
        )
        campus = "6f1d3c1e-0000-4000-8000-000000000001"
        assert key(of, "daily", Cut(("campus",), (campus,))) == f"lb:z:overall:daily:{campus}:20251024"

    def test_a_groups_value_cannot_leave_its_place_in_a_template(self):
        of = board(
            windows=[{"period": "daily"}],
            groups=[["country"]],
            keys={"daily": "x:{slot}", "daily:country": "x:{slot}:{group.country}"},
        )
        assert key(of, "daily", Cut(("country",), ("BR:{x}|",))) == "x:2025-10-24:BR%3A%7Bx%7D%7C"

    def test_a_group_without_a_template_is_appended_to_the_windows(self):
        of = board(windows=[{"period": "daily"}], groups=[["country"]], keys={"daily": "x:{slot}"})
        assert key(of, "daily", Cut(("country",), ("BR",))) == "x:2025-10-24:country=BR"

    def test_weeks_belong_to_their_iso_year(self):
        window = Window(period="weekly")
        calendar = Calendar(window, ZoneInfo("UTC"))
        slot = calendar.at(moment_of(datetime(2024, 12, 30, tzinfo=UTC)))
        space = KeySpace(
            BoardRef("p", "b"),
            parse_definition({"windows": [{"period": "weekly"}], "keys": {"weekly": "w:{yyyyww}"}}),
            cluster=False,
        )
        assert space.window(0, "weekly", calendar.placeholders(slot)) == "w:202501"


class TestOnACluster:
    def slots(self, of: Board) -> set[int]:
        names = ["board", "journal", "windows", "ids:0", "calls:2", "cuts:daily|2025-10-24"]
        keys = [of.keys.of_board(0, name) for name in names]
        for window in of.definition.windows:
            for cut in (WHOLE, Cut(("country",), ("BR",)), Cut(("country",), ("{other}",))):
                keys += of.keys.parts(key(of, window.label, cut), metadata=True)
        return {key_slot(each.encode()) for each in keys}

    def test_all_keys_of_a_board_share_one_slot(self):
        of = board(cluster=True, windows=ALL_PERIODS, groups=[["country"]], dense=True, score="int64")
        assert len(self.slots(of)) == 1

    def test_all_keys_of_a_templated_board_share_one_slot(self):
        of = board(
            "framedle/daily_frame",
            cluster=True,
            windows=[{"period": "daily"}, {"period": "weekly"}],
            groups=[["country"]],
            keys={"daily": "lb:{board}:{slot}", "weekly": "lb:{board}:week:{slot}"},
        )
        assert len(self.slots(of)) == 1
        assert key(of, "daily") == "{lb:daily_frame}:2025-10-24"

    def test_boards_lie_in_slots_of_their_own(self):
        slots = [self.slots(board(f"p/{n}", cluster=True, groups=[["country"]])) for n in range(20)]
        assert len(set[int]().union(*slots)) > 15

    @pytest.mark.parametrize(("left", "right"), [("a", "a-"), ("a", "a."), ("x_", "x")])
    def test_templated_boards_whose_tags_agree_still_share_no_key(self, left: str, right: str):
        keys = {
            board(
                f"p/{name}", cluster=True, windows=[{"period": "daily"}], keys={"daily": "lb:{board}:{slot}"}
            ).keys.of_board(0, "board")
            for name in (left, right)
        }
        assert len(keys) == 2

    def test_templates_without_a_common_beginning_are_refused(self):
        with pytest.raises(InvalidInput, match="common beginning"):
            board(cluster=True, windows=[{"period": "daily"}], keys={"daily": "{slot}:x"})

    def test_a_window_without_a_template_is_refused(self):
        with pytest.raises(InvalidInput, match="every window has a template or none"):
            board(cluster=True, windows=ALL_PERIODS, keys={"daily": "x:{slot}"})


class TestNames:
    @pytest.mark.parametrize("text", ["board", "/board", "project/", "a/b/c", "", "/"])
    def test_a_board_is_named_by_project_and_board(self, text: str):
        with pytest.raises(InvalidInput, match="PROJECT/BOARD"):
            BoardRef.parse(text)

    @pytest.mark.parametrize(
        "text", ["p/a b", "p/{a}", "p/a:b", "p/é", "p/a\n", f"p/{'a' * 65}", "p}/a", "p/"]
    )
    def test_ids_have_1_to_64_of_the_documented_characters(self, text: str):
        with pytest.raises(InvalidInput) as refused:
            BoardRef.parse(text)
        assert [field.field for field in refused.value.fields] == ["board"]

    def test_every_documented_character_is_accepted(self):
        assert str(BoardRef.parse(f"A-Z_a.z09/{'b' * 64}")) == f"A-Z_a.z09/{'b' * 64}"
