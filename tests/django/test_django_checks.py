"""`manage.py check`: each wrong declaration and setting has one error that names class, field and fix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.apps import apps
from django.core.checks import run_checks
from django.db import connections, models
from django.test.utils import isolate_apps, override_settings

from laurels.django import LeaderboardIndex
from laurels.django.checks import check_declarations, check_settings

if TYPE_CHECKING:
    from django.core.checks import CheckMessage


def wrong(*indexes: models.Index, databases: list[str] | None = None) -> list[CheckMessage]:
    """What a model that declares these indexes is told."""
    with isolate_apps("league"):

        class GameScore(models.Model):
            player = models.ForeignKey("self", null=True, on_delete=models.CASCADE)
            region = models.CharField(max_length=20)
            score = models.BigIntegerField()
            price = models.DecimalField(max_digits=9, decimal_places=2)
            address = models.GenericIPAddressField()
            day = models.DateField()
            seen = models.DateTimeField()

            class Meta:
                app_label = "league"

        GameScore._meta.indexes = list(indexes)
        for index in indexes:
            if not index.name:
                index.set_name_with_model(GameScore)

        class Only:
            def get_models(self) -> list[type[models.Model]]:
                return [GameScore]

        only: Any = Only()
        return check_declarations([only], databases)


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (
            LeaderboardIndex(score="scor"),
            ".score: GameScore has no field 'scor'; did you mean score?",
        ),
        (
            LeaderboardIndex(score="price"),
            ".score: the field 'price' is a DecimalField; scores are 64-bit integers: use BigIntegerField",
        ),
        (
            LeaderboardIndex(score="score", group_by=["regoin"]),
            ".group_by: GameScore has no field 'regoin'; did you mean region?",
        ),
        (
            LeaderboardIndex(score="score", group_by=["address"]),
            ".group_by: the field 'address' is a GenericIPAddressField; groups are text",
        ),
        (
            LeaderboardIndex(score="score", group_by="region"),
            ".group_by: must be a list: write ['region']",
        ),
        (
            LeaderboardIndex(score="score", windw="daily"),
            ".windw: is not a field of a leaderboard; did you mean window?",
        ),
        (
            LeaderboardIndex(score="score", window="dayly"),
            ".window: must be",
        ),
        (
            LeaderboardIndex(score="score", keep=0),
            ".keep: must be",
        ),
        (
            LeaderboardIndex(score="score", at="day"),
            ".at: the field 'day' is Date(); use DateTimeField",
        ),
        (
            LeaderboardIndex(score="score", name="mine"),
            ".name: Django's name of a leaderboard follows from its model",
        ),
    ],
)
def test_a_wrong_declaration_is_told_with_class_field_and_fix(index: models.Index, message: str):
    (found,) = wrong(models.Index(fields=["score"], name="plain"), index)
    label = index.label
    assert found.id == "laurels.E001"
    assert found.msg.startswith(f"league.GameScore.Meta.indexes[1] ({label}){message}")


def test_two_leaderboards_with_one_label_are_told_apart():
    found = wrong(LeaderboardIndex(score="score"), LeaderboardIndex(score="score", window="weekly"))
    assert [each.id for each in found] == ["laurels.E001", "laurels.E001"]
    assert "another leaderboard of the model has the same label" in found[0].msg
    assert found[0].hint == "Give each its own, such as label='score-weekly'."


def test_foreign_keys_and_attributes_are_fields():
    assert (
        wrong(
            LeaderboardIndex(score="score", group_by=["player"]),
            LeaderboardIndex(score="score", label="other", group_by=["player_id", "day"], at="seen"),
        )
        == []
    )


def test_other_databases_than_postgresql_are_refused(monkeypatch: pytest.MonkeyPatch):
    assert wrong(LeaderboardIndex(score="score"), databases=["default"]) == []
    monkeypatch.setattr(connections["default"], "vendor", "sqlite")
    (found,) = wrong(LeaderboardIndex(score="score"), databases=["default"])
    assert found.id == "laurels.E002"
    assert found.msg == "league.GameScore declares a leaderboard, and the database 'default' is sqlite."


@pytest.mark.parametrize(
    ("given", "message", "hint"),
    [
        ({"VALKEY": "redis://"}, "settings.LAURELS has no 'VALKEY'.", "Did you mean VALKEY_URL?"),
        (
            {"MAINTAIN": "yes"},
            "settings.LAURELS is wrong: Expected `bool`, got `str` - at `$.MAINTAIN`.",
            None,
        ),
        ("redis://", "settings.LAURELS is wrong: Expected `object`, got `str`.", None),
    ],
)
def test_wrong_settings_are_told(given: object, message: str, hint: str | None):
    with override_settings(LAURELS=given):
        (found,) = check_settings()
    assert (found.id, found.msg, found.hint) == ("laurels.E003", message, hint)


def test_the_models_of_the_tests_are_right():
    assert run_checks(app_configs=apps.get_app_configs()) == []
