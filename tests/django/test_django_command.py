"""`manage.py laurels`."""

from __future__ import annotations

import io

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from league.models import GameScore

pytestmark = pytest.mark.usefixtures("rows")


def said(*arguments: str) -> str:
    out = io.StringIO()
    call_command("laurels", *arguments, stdout=out)
    return out.getvalue()


def test_build_indexes_the_rows_that_are_there_and_shows_what_each_has():
    GameScore.objects.bulk_create(GameScore(score=score, region="asia") for score in (5, 6, None))
    shown = said("build", "league.GameScore")
    assert "league_gamescore.score: built, " in shown
    assert "0 changes wait, board league/league_gamescore.score\n" in shown
    assert GameScore.leaderboard.index("score").count() == 2
    assert "odd solo" not in shown
    assert "public.odd solo.points" in said("status")


def test_verify_fails_if_a_row_was_changed_behind_the_triggers():
    (row, _) = GameScore.objects.bulk_create(GameScore(score=score, region="asia") for score in (5, 6))
    said("build")
    assert "GameScore" in said("verify", "league.GameScore")
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        cursor.execute("UPDATE league_gamescore SET score = 7 WHERE id = %s", [row.pk])
        cursor.execute("RESET session_replication_role")
    with pytest.raises(CommandError, match="differ from their tables: run manage"):
        said("verify", "league.GameScore")
    said("rebuild", "league.GameScore")
    said("verify", "league.GameScore")
    assert GameScore.leaderboard.index("score").score(row) == 7


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("league.Team", "league.Team declares no leaderboard in its Meta.indexes"),
        ("league.Scores", "write app.Model, such as scores.GameScore"),
        ("GameScore", "write app.Model, such as scores.GameScore"),
    ],
)
def test_models_are_named_by_app_and_name(model: str, message: str):
    with pytest.raises(CommandError, match=message):
        said("build", model)


def test_a_leaderboard_that_is_not_installed_is_told_with_the_fix():
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE league_round DISABLE TRIGGER ALL")
    try:
        with pytest.raises(CommandError, match=r"league_round.points is not installed .* manage.py migrate"):
            said("status")
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE league_round ENABLE TRIGGER ALL")
