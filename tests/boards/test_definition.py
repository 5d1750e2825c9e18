from __future__ import annotations

import json
import tomllib
from datetime import timedelta
from typing import Any

import pytest

from laurels.boards.definition import BoardDefinition, Limits, Window, parse_definition
from laurels.errors import InvalidInput

DAILY = {"period": "daily"}
WEEKLY = {"period": "weekly"}


def problem(**fields: object) -> str:
    """Every path and message of what is wrong, as one text."""
    with pytest.raises(InvalidInput) as refused:
        parse_definition(fields)
    assert refused.value.fields
    for field in refused.value.fields:
        assert f"{field.field}: {field.detail}" in refused.value.detail
    return refused.value.detail


def windows(*given: dict[str, Any]) -> tuple[Window, ...]:
    return parse_definition({"windows": list(given)}).windows


class TestDefaults:
    def test_they_are_as_the_contract_says(self):
        definition = parse_definition({})
        assert definition.model_dump() == {
            "aggregate": "best",
            "allow_op": False,
            "order": "desc",
            "score": "number",
            "ties": "shared",
            "windows": (
                {
                    "period": "all_time",
                    "keep": None,
                    "name": None,
                    "sum_of": None,
                    "days": None,
                    "seconds": None,
                },
            ),
            "timezone": "UTC",
            "timezone_by": None,
            "timezones": {},
            "groups": (),
            "dense": False,
            "feeds": (),
            "lateness": timedelta(days=1),
            "archive": {"snapshot": (), "journal": True},
            "limits": {"min": None, "max": None, "max_change": None},
            "player_writes": False,
            "shards": 1,
            "keys": None,
            "adopt": False,
            "rating": None,
        }

    def test_elo_starts_at_1000_with_k_32(self):
        rating = parse_definition({"rating": {"system": "elo"}}).rating
        assert rating is not None
        assert rating.model_dump() == {
            "system": "elo",
            "k": 32,
            "initial": 1000,
            "provisional": 0,
            "rank_provisional": True,
        }

    def test_no_limits_are_false(self):
        assert not Limits()
        assert Limits(min=0)


class TestFields:
    @pytest.mark.parametrize(
        ("field", "values"),
        [
            ("aggregate", ["best", "last", "first", "sum"]),
            ("allow_op", [True, False]),
            ("order", ["desc", "asc"]),
            ("score", ["number", "int64"]),
            ("ties", ["shared", "earliest", "member"]),
            ("timezone", ["UTC", "Africa/Cairo", "America/Argentina/Buenos_Aires"]),
            ("dense", [True, False]),
            ("lateness", ["P1D", "PT0S", "P30D", "PT1H30M"]),
            ("player_writes", [True, False]),
            ("shards", [1, 7, 256]),
            ("groups", [[["country"]], [["country"], ["region", "city"]]]),
            ("feeds", [["global/score"], ["a.b/c-d", "A_1/x"]]),
            ("archive", [{"journal": False}, {"snapshot": [{"period": "all_time", "every": "day"}]}]),
            ("limits", [{"min": 0}, {"max": 1.5}, {"min": -1, "max": 1, "max_change": 0.5}]),
            ("rating", [None, {"system": "elo", "k": 16}, {"system": "glicko2", "tau": 0.3}]),
        ],
    )
    def test_good_values_are_accepted_and_survive_json(self, field: str, values: list[object]):
        for value in values:
            definition = parse_definition({field: value})
            assert parse_definition(json.loads(definition.model_dump_json())) == definition

    @pytest.mark.parametrize(
        ("field", "value", "path"),
        [
            ("aggregate", "max", "aggregate"),
            ("aggregate", None, "aggregate"),
            ("allow_op", "yes", "allow_op"),
            ("allow_op", 1, "allow_op"),
            ("order", "up", "order"),
            ("score", "float", "score"),
            ("ties", "random", "ties"),
            ("windows", [], "windows"),
            ("windows", [DAILY] * 33, "windows"),
            ("windows", {}, "windows"),
            ("windows", [{"keep": 1}], "windows[0].period"),
            ("windows", [DAILY, {"period": "fortnightly"}], "windows[1].period"),
            ("windows", [{"period": "daily", "length": 1}], "windows[0].length"),
            ("windows", [{"period": "daily", "name": "a:b"}], "windows[0].name"),
            ("windows", [{"period": "daily", "name": ""}], "windows[0].name"),
            ("windows", [{"period": "daily", "name": "x" * 65}], "windows[0].name"),
            ("windows", [{"period": "daily", "name": "day\n"}], "windows[0].name"),
            ("windows", [{"period": "rolling", "days": 0}], "windows[0].days"),
            ("windows", [{"period": "rolling", "days": 367}], "windows[0].days"),
            ("windows", [{"period": "rolling", "days": 7.0}], "windows[0].days"),
            ("windows", [{"period": "rolling", "days": True}], "windows[0].days"),
            ("windows", [{"period": "every", "seconds": 0}], "windows[0].seconds"),
            ("windows", [{"period": "every", "seconds": 366 * 86_400 + 1}], "windows[0].seconds"),
            ("windows", [{"period": "rolling"}], "windows[0]: `days`"),
            ("windows", [{"period": "daily", "days": 7}], "windows[0]: `days`"),
            ("windows", [{"period": "every"}], "windows[0]: `seconds`"),
            ("windows", [{"period": "daily", "seconds": 60}], "windows[0]: `seconds`"),
            ("windows", [{"period": "all_time", "keep": 3}], "windows[0]: an all_time window never ends"),
            (
                "windows",
                [{"period": "hourly", "sum_of": "hourly"}],
                "windows[0]: a window of period 'hourly'",
            ),
            ("timezone", "Mars/Olympus", "timezone"),
            ("timezone", "", "timezone"),
            ("timezone", "../etc/passwd", "timezone"),
            ("timezone_by", "country", "timezone_by: 'country' is not a dimension"),
            ("timezones", {"a": "UTC"}, "timezones: needs `timezone_by`"),
            ("timezones", {"a": "Nowhere"}, "timezones.a"),
            ("groups", [["a"], ()], "groups[1]"),
            ("groups", ["country"], "groups[0]"),
            ("groups", [["a=b"]], "groups[0][0]"),
            ("groups", [["a", "a"]], "groups: ['a', 'a'] names a dimension twice"),
            ("groups", [["a", "b"], ["b", "a"]], "groups: the same dimensions are listed twice"),
            ("groups", [[str(n) for n in range(9)]], "groups[0]"),
            ("groups", [[str(n)] for n in range(17)], "groups"),
            ("dense", "true", "dense"),
            ("feeds", ["score"], "feeds[0]"),
            ("feeds", ["a/b/c"], "feeds[0]"),
            ("feeds", ["a/b\n"], "feeds[0]"),
            ("feeds", ["a/{b}"], "feeds[0]"),
            ("feeds", ["a/b", "a/b"], "feeds: a board is listed twice"),
            ("feeds", [f"p/{n}" for n in range(17)], "feeds"),
            ("lateness", "-P1D", "lateness"),
            ("lateness", "a day", "lateness"),
            ("archive", {"journal": 1}, "archive.journal"),
            ("archive", {"snapshots": []}, "archive.snapshots"),
            ("archive", {"snapshot": [{"period": "weekly", "top": 0}]}, "archive.snapshot[0].top"),
            ("archive", {"snapshot": [{"period": "weekly", "every": "hour"}]}, "archive.snapshot[0].every"),
            ("limits", {"min": "0"}, "limits.min"),
            ("limits", {"max": True}, "limits.max"),
            ("limits", {"max": float("nan")}, "limits.max"),
            ("limits", {"max": float("inf")}, "limits.max"),
            ("limits", {"max_change": 0}, "limits.max_change"),
            ("limits", {"max_change": -1}, "limits.max_change"),
            ("limits", {"max_change": 10**400}, "limits.max_change"),
            ("limits", {"min": -(10**400)}, "limits.min"),
            ("limits", {"min": 2, "max": 1}, "limits: min 2 is greater than max 1"),
            ("limits", {"most": 1}, "limits.most"),
            ("player_writes", 0, "player_writes"),
            ("shards", 0, "shards"),
            ("shards", 257, "shards"),
            ("shards", 1.0, "shards"),
            ("rating", {"system": "trueskill"}, "rating"),
            ("rating", {"system": "elo", "k": 0}, "rating.k"),
            ("rating", {"system": "glicko2", "k": 32}, "rating.k"),
            ("agregate", "sum", "agregate"),
        ],
    )
    def test_bad_values_are_refused_by_their_path(self, field: str, value: object, path: str):
        assert path in problem(**{field: value})

    def test_all_errors_are_reported_at_once(self):
        told = problem(order="up", shards=0, windows=[{"period": "daily", "keep": 0}], extra=1)
        assert all(path in told for path in ("order", "shards", "windows[0].keep", "extra"))

    @pytest.mark.parametrize("given", [None, [], "x", 1])
    def test_a_definition_that_is_not_an_object_is_refused(self, given: object):
        with pytest.raises(InvalidInput) as refused:
            parse_definition(given)
        assert [field.field for field in refused.value.fields] == ["definition"]

    def test_a_definition_cannot_be_changed_in_place(self):
        with pytest.raises(ValueError, match="frozen"):
            parse_definition({}).shards = 2  # pyright: ignore[reportAttributeAccessIssue]


class TestFieldsTogether:
    @pytest.mark.parametrize(
        ("fields", "told"),
        [
            ({"dense": True, "shards": 2}, "dense: distinct scores cannot be counted across shards"),
            ({"score": "int64", "limits": {"max": 1.5}}, "limits.max: must be a 64-bit integer"),
            ({"score": "int64", "limits": {"min": -(2**63) - 1}}, "limits.min: must be a 64-bit integer"),
            ({"score": "int64", "limits": {"max_change": 2**63}}, "limits.max_change: must be a 64-bit"),
            ({"score": "int64", "rating": {"system": "elo"}}, "rating: ratings are fractional"),
            ({"shards": 2, "keys": {"all_time": "x"}}, "keys: a board with shards"),
        ],
    )
    def test_contradicting_fields_are_refused(self, fields: dict[str, Any], told: str):
        assert told in problem(**fields)

    def test_int64_limits_reach_both_ends(self):
        limits = {"min": -(2**63), "max": 2**63 - 1, "max_change": 2**63 - 1}
        assert parse_definition({"score": "int64", "limits": limits}).limits.model_dump() == limits

    def test_a_zone_of_its_own_for_each_value_of_a_dimension(self):
        fields = {"groups": [["campus"]], "timezone_by": "campus", "timezones": {"a": "Asia/Tokyo"}}
        assert parse_definition(fields).timezones == {"a": "Asia/Tokyo"}


class TestKeep:
    @pytest.mark.parametrize(
        ("keep", "kept"),
        [
            (1, 1),
            (7, 7),
            (None, None),
            ("P7D", timedelta(days=7)),
            ("P30D", timedelta(days=30)),
            ("PT48H", timedelta(hours=48)),
            ("P12W", timedelta(weeks=12)),
        ],
    )
    def test_is_a_count_or_a_duration_or_for_ever(self, keep: object, kept: object):
        assert windows({"period": "daily", "keep": keep})[0].keep == kept

    @pytest.mark.parametrize("keep", [0, -1, 1.5, True, "", "7", "P0D", "-P7D", "P", [], {}])
    def test_other_values_are_refused_with_the_expected_form(self, keep: object):
        told = problem(windows=[{"period": "daily", "keep": keep}])
        assert told == "windows[0].keep: is a number of windows from 1, or an ISO duration such as 'P30D'"

    def test_a_duration_survives_json(self):
        definition = parse_definition({"windows": [{"period": "daily", "keep": "P7D"}]})
        assert json.loads(definition.model_dump_json())["windows"][0]["keep"] == "P7D"


class TestWindows:
    def test_they_are_called_by_their_period_unless_named(self):
        found = windows(
            DAILY,
            {"period": "rolling", "days": 7},
            {"period": "every", "seconds": 3600},
            {"period": "weekly", "name": "season"},
        )
        assert [window.label for window in found] == ["daily", "rolling_7d", "every_3600s", "season"]

    def test_two_of_one_name_are_refused(self):
        assert problem(windows=[DAILY, DAILY]) == "windows: two windows are called 'daily'; give one a `name`"
        assert "two windows are called 'x'" in problem(
            windows=[{**DAILY, "name": "x"}, {**WEEKLY, "name": "x"}]
        )

    def test_two_of_one_period_are_fine_under_different_names(self):
        assert len(windows(DAILY, {**DAILY, "name": "day", "keep": 1})) == 2

    def test_a_name_that_is_another_period_is_refused(self):
        assert "'weekly' is a period's own name" in problem(windows=[{"period": "daily", "name": "weekly"}])
        assert "'hourly' is a period's own name" in problem(windows=[{"period": "daily", "name": "hourly"}])

    @pytest.mark.parametrize(
        ("base", "sums"),
        [
            ({"period": "hourly"}, ["daily", "weekly", "monthly", "yearly", "all_time"]),
            ({"period": "daily"}, ["weekly", "monthly", "yearly", "all_time"]),
            ({"period": "weekly"}, ["all_time"]),
            ({"period": "monthly"}, ["yearly", "all_time"]),
            ({"period": "yearly"}, ["all_time"]),
            ({"period": "every", "seconds": 60}, ["all_time"]),
        ],
    )
    def test_a_sum_is_of_windows_that_fit_whole_into_it(self, base: dict[str, Any], sums: list[str]):
        label = Window.model_validate(base).label
        for period in ("daily", "weekly", "monthly", "yearly", "all_time"):
            given = [base, {"period": period, "name": "total", "sum_of": label}]
            if period in sums:
                assert windows(*given)[1].sum_of == label
            else:
                assert "do not fit whole" in problem(windows=given)

    def test_a_fixed_window_sums_one_that_divides_it(self):
        minute = {"period": "every", "seconds": 60}
        assert windows(minute, {"period": "every", "seconds": 3600, "sum_of": "every_60s"})
        told = problem(windows=[minute, {"period": "every", "seconds": 90, "sum_of": "every_60s"}])
        assert "'every_60s' windows do not fit whole into 'every_90s' ones" in told

    def test_a_rolling_window_sums_days_only(self):
        assert windows(DAILY, {"period": "rolling", "days": 7, "sum_of": "daily"})
        told = problem(windows=[WEEKLY, {"period": "rolling", "days": 7, "sum_of": "weekly"}])
        assert "do not fit whole" in told

    @pytest.mark.parametrize(
        ("given", "told"),
        [
            ([{**WEEKLY, "sum_of": "daily"}], "sums 'daily', which is not a window of the board"),
            ([{**WEEKLY, "sum_of": "weekly"}], "sums 'weekly', which is itself derived"),
            (
                [DAILY, {**WEEKLY, "sum_of": "daily"}, {"period": "all_time", "sum_of": "weekly"}],
                "'all_time' sums 'weekly', which is itself derived",
            ),
            (
                [{"period": "rolling", "days": 7}, {"period": "all_time", "sum_of": "rolling_7d"}],
                "'all_time' sums 'rolling_7d', which is itself derived",
            ),
        ],
    )
    def test_a_sum_of_a_missing_or_derived_window_is_refused(self, given: list[Any], told: str):
        assert told in problem(windows=given)


class TestTemplates:
    @pytest.mark.parametrize(
        ("keys", "told"),
        [
            ({"monthly": "x:{slot}"}, "keys.monthly: the board has no window called 'monthly'"),
            ({"daily": ""}, "keys.daily: a template has 1 to 512 characters"),
            ({"daily": "x" * 513}, "keys.daily: a template has 1 to 512 characters"),
            ({"daily": "x:{slot"}, "keys.daily: braces only enclose placeholders"),
            ({"daily": "x:{{slot}}"}, "keys.daily: braces only enclose placeholders"),
            ({"daily": "x:{slut}"}, "keys.daily: unknown placeholder {slut}"),
            ({"daily": "x:{yyyyww}"}, "keys.daily: unknown placeholder {yyyyww}"),
            ({"daily": "x:{group.country}:{slot}"}, "keys.daily: unknown placeholder {group.country}"),
            ({"daily": "x"}, "keys.daily: needs {slot}, or two windows would share a key"),
            ({"daily": "x:{yyyymm}"}, "keys.daily: needs {slot}"),
            ({"weekly": "x:{yyyy}"}, "keys.weekly: needs {slot}"),
            (
                {"daily:city": "x:{slot}:{group.city}"},
                "keys.daily:city: 'city' is not one of the board's groups",
            ),
            ({"daily:country": "x:{slot}"}, "keys.daily:country: needs {group.country}"),
            ({"daily": "x:{slot}", "weekly": "x:{slot}"}, "keys.weekly: has the same template as 'daily'"),
        ],
    )
    def test_a_template_that_cannot_be_right_is_refused(self, keys: dict[str, str], told: str):
        assert told in problem(windows=[DAILY, WEEKLY], groups=[["country"]], keys=keys)

    @pytest.mark.parametrize(
        "keys",
        [
            {"rolling_7d": "x:{slot}", "daily": "x:{yyyy}-{mm}-{dd}"},
            {"weekly": "x:{yyyyww}", "monthly": "x:{yyyymm}"},
            {"all_time": "x:2025-10-24", "daily": "x:{slot}"},
            {"every_60s": "x:{slot}", "daily": "x:{yyyymmdd}"},
            {"yearly": "x:{slot}", "every_60s": "x:{slot}"},
            {"daily:country": "x:{slot}:{group.country}", "daily:city": "x:{slot}:{group.city}"},
            {"daily:country": "x:{slot}:{group.country}", "rolling_7d": "x:{slot}:total"},
        ],
    )
    def test_templates_that_could_make_one_key_are_refused(self, keys: dict[str, str]):
        given = [DAILY, WEEKLY, {"period": "monthly"}, {"period": "yearly"}, {"period": "all_time"}]
        given += [{"period": "rolling", "days": 7}, {"period": "every", "seconds": 60}]
        first, second = keys
        told = problem(windows=given, groups=[["country"], ["city"]], keys=keys)
        assert f"keys.{second}: " in told
        assert repr(first) in told

    @pytest.mark.parametrize(
        "keys",
        [
            {"daily": "x:{yyyymmdd}", "weekly": "x:{slot}", "monthly": "x:{yyyymm}", "all_time": "x"},
            {"daily": "d:{yyyy}{mm}{dd}", "weekly": "w:{yyyyww}", "monthly": "m:{yyyymm}", "all_time": "a"},
            {
                "daily": "x:{yyyymm}:{dd}",
                "weekly": "x:{yyyy}-W{ww}",
                "monthly": "x:{yyyymm}",
                "all_time": "x",
            },
        ],
    )
    def test_templates_that_never_meet_are_accepted(self, keys: dict[str, str]):
        given = [DAILY, WEEKLY, {"period": "monthly"}, {"period": "all_time"}]
        assert parse_definition({"windows": given, "keys": keys}).keys == keys


def test_toml_and_json_declare_the_same_board():
    toml = """
        aggregate = "sum"
        score = "int64"
        timezone = "America/Sao_Paulo"
        groups = [["country"], ["region", "city"]]
        lateness = "PT6H"
        [[windows]]
        period = "daily"
        keep = "P7D"
        [[windows]]
        period = "weekly"
        sum_of = "daily"
        keep = 4
        [limits]
        min = 0
        max_change = 9007199254740993
        [archive]
        snapshot = [{ period = "weekly", top = 100 }]
        [keys]
        daily = "lb:{board}:{slot}"
    """
    as_json = """{
        "aggregate": "sum", "score": "int64", "timezone": "America/Sao_Paulo",
        "groups": [["country"], ["region", "city"]], "lateness": "PT6H",
        "windows": [{"period": "daily", "keep": "P7D"}, {"period": "weekly", "sum_of": "daily", "keep": 4}],
        "limits": {"min": 0, "max_change": 9007199254740993},
        "archive": {"snapshot": [{"period": "weekly", "top": 100}]},
        "keys": {"daily": "lb:{board}:{slot}"}
    }"""
    declared = parse_definition(tomllib.loads(toml))
    assert declared == parse_definition(json.loads(as_json))
    assert declared == BoardDefinition.model_validate_json(as_json)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"timezone_by": "campus"}, "timezone_by"),
        ({"groups": [["a"], ["a"]]}, "groups"),
        ({"keys": {"nothing": "x"}}, "keys.nothing"),
    ],
)
def test_an_error_between_fields_names_the_field_to_change(fields: dict[str, Any], field: str):
    with pytest.raises(InvalidInput) as raised:
        parse_definition(fields)
    assert [each.field for each in raised.value.fields] == [field]


@pytest.mark.parametrize("lateness", [0, 7, 1.5, True, "1 day", "1D", "", "-P1D", None])
def test_lateness_is_an_iso_duration_and_nothing_else(lateness: object):
    with pytest.raises(InvalidInput, match=r"^lateness: "):
        parse_definition({"lateness": lateness})


@pytest.mark.parametrize(
    ("given", "written"),
    [("P4992W", "P34944D"), ("P1Y", "P365D"), ("PT36H", "P1DT12H"), ("PT0.5S", "PT0.5S"), ("P0D", "P0D")],
)
def test_durations_are_written_in_days_and_less(given: str, written: str):
    assert parse_definition({"lateness": given}).model_dump(mode="json")["lateness"] == written
