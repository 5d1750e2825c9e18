"""Migrations that Django writes by itself, step by step, in a project of their own: as its models change."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import create_engine, make_url, text

from laurels.index.installed import installed

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

HEAD = """
from django.db import models
from laurels.django import LeaderboardIndex
"""
MODEL = """
class {name}(models.Model):
    region = models.CharField(max_length=20)
    {score} = models.BigIntegerField()

    class Meta:
        indexes = [{indexes}]
        {meta}
"""
# Makes migrations of what models.py says, runs them, and says which operations they have.
STEP = """
import json, os, sys, django
from django.conf import settings
from django.core.management import call_command
settings.configure(
    DATABASES=json.loads(os.environ["DATABASES"]),
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    INSTALLED_APPS=["laurels.django", "scores"],
    USE_TZ=True,
)
django.setup()
from django.db.migrations.questioner import MigrationQuestioner
MigrationQuestioner.ask_rename_model = MigrationQuestioner.ask_rename = lambda *_: True
MigrationQuestioner.ask_initial = lambda *_: True
if len(sys.argv) > 1:
    call_command("migrate", "scores", sys.argv[1], verbosity=0)
else:
    call_command("makemigrations", "scores", verbosity=0, interactive=False)
    call_command("migrate", verbosity=0)
    from django.db.migrations.loader import MigrationLoader
    (last,) = MigrationLoader(None).graph.leaf_nodes("scores")
    operations = MigrationLoader(None).get_migration(*last).operations
    print(json.dumps([last[1], [type(each).__name__ for each in operations]]))
"""


class Project:
    """A Django project whose models change."""

    def __init__(self, folder: Path, databases: dict[str, Any]) -> None:
        self._app = folder / "scores"
        (self._app / "migrations").mkdir(parents=True)
        (self._app / "__init__.py").touch()
        (self._app / "migrations" / "__init__.py").touch()
        self._folder = folder
        self._environment = {**os.environ, "DATABASES": json.dumps(databases), "PYTHONDONTWRITEBYTECODE": "1"}
        self._last = ""

    def becomes(
        self, indexes: Iterable[str], *, name: str = "GameScore", score: str = "score", meta: str = ""
    ) -> list[str]:
        """Migrates to this model; returns the names of the operations, or none."""
        model = MODEL.format(name=name, score=score, indexes=", ".join(indexes), meta=meta)
        return self._migrated(HEAD + model)

    def without_models(self) -> list[str]:
        return self._migrated(HEAD)

    def back_to(self, migration: str) -> None:
        self._run(migration)

    def _migrated(self, models: str) -> list[str]:
        (self._app / "models.py").write_text(models)
        last, operations = json.loads(self._run())
        if last == self._last:
            return []
        self._last = last
        return operations

    def _run(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", STEP, *arguments],
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


PLAIN = 'LeaderboardIndex(score="score")'
GROUPED = 'LeaderboardIndex(score="score", group_by=["region"])'


@pytest.fixture
def project(tmp_path: Path, empty_database: str) -> Project:
    url = make_url(empty_database)
    default = {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": url.database,
        "USER": url.username,
        "PASSWORD": url.password,
        "HOST": url.query.get("host") or url.host or "",
        "PORT": str(url.port or ""),
    }
    return Project(tmp_path, {"default": default})


def indexes(database: str) -> list[str]:
    engine = create_engine(database)
    with engine.connect() as connection:
        found = [name for name, each in installed(connection).items() if each.triggers == 4]
    engine.dispose()
    return found


def run(database: str, statement: str) -> list[Any]:
    engine = create_engine(database)
    with engine.begin() as connection:
        result = connection.execute(text(statement))
        found = list(result) if result.returns_rows else []
    engine.dispose()
    return found


def test_makemigrations_writes_what_changes_and_migrate_installs_it(project: Project, empty_database: str):
    assert project.becomes([]) == ["CreateModel"]
    assert project.becomes([PLAIN]) == ["AddIndex"]
    assert indexes(empty_database) == ["scores_gamescore.score"]
    run(empty_database, "INSERT INTO scores_gamescore (region, score) VALUES ('asia', 5)")
    known = "INSERT INTO laurels_index.positions SELECT number, '1', 'x' FROM laurels_index.indexes"
    run(empty_database, known)
    other_windows = 'LeaderboardIndex(score="score", window="weekly", keep=2, order="asc")'
    assert project.becomes([other_windows]) == []
    assert project.becomes([GROUPED]) == ["RemoveIndex", "AddIndex"]
    assert indexes(empty_database) == ["scores_gamescore.score"]
    # What is known of the records outlives the change.
    assert run(empty_database, "SELECT key FROM laurels_index.positions") == [("1",)]
    assert run(empty_database, "SELECT count(*) FROM laurels_index.outbox") == [(1,)]
    project.back_to("0002")
    assert indexes(empty_database) == ["scores_gamescore.score"]
    project.back_to("0001")
    assert indexes(empty_database) == []
    assert run(empty_database, "SELECT count(*) FROM laurels_index.positions") == [(0,)]
    project.back_to("zero")


def test_a_removed_leaderboard_and_a_deleted_model_leave_nothing_behind(
    project: Project, empty_database: str
):
    by_region = 'LeaderboardIndex(score="score", label="by-region", group_by=["region"])'
    assert project.becomes([PLAIN, by_region]) == ["CreateModel"]
    assert indexes(empty_database) == ["scores_gamescore.by-region", "scores_gamescore.score"]
    assert project.becomes([PLAIN]) == ["RemoveIndex"]
    assert indexes(empty_database) == ["scores_gamescore.score"]
    assert project.without_models() == ["DeleteModel"]
    assert run(empty_database, "SELECT index FROM laurels_index.indexes") == []
    functions = "SELECT count(*) FROM pg_proc WHERE pronamespace = 'laurels_index'::regnamespace"
    assert run(empty_database, functions) == [(0,)]


def test_a_renamed_model_table_and_field_take_their_leaderboard_along(project: Project, empty_database: str):
    project.becomes([PLAIN])
    assert set(project.becomes([PLAIN], name="Score")) == {"RenameModel", "RemoveIndex", "AddIndex"}
    assert indexes(empty_database) == ["scores_score.score"]
    assert set(project.becomes([PLAIN], name="Score", meta='db_table = "best"')) == {
        "AlterModelTable", "RemoveIndex", "AddIndex",
    }  # fmt: skip
    assert indexes(empty_database) == ["best.score"]
    by_points = 'LeaderboardIndex(score="points", label="score")'
    assert set(project.becomes([by_points], name="Score", score="points", meta='db_table = "best"')) == {
        "RenameField", "RemoveIndex", "AddIndex",
    }  # fmt: skip
    run(empty_database, "INSERT INTO best (region, points) VALUES ('asia', 5)")
    assert run(empty_database, "SELECT index, score FROM laurels_index.outbox") == [("best.score", 5)]


def test_on_another_database_migrations_pass_the_leaderboard_over(tmp_path: Path):
    lite = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(tmp_path / "lite.db")}
    project = Project(tmp_path / "project", {"default": lite})
    assert project.becomes([PLAIN]) == ["CreateModel"]
    assert project.becomes([GROUPED]) == ["RemoveIndex", "AddIndex"]
    project.back_to("zero")
