"""Alembic's autogenerate on a real environment: a folder with `env.py`, a database, revisions that run."""

from __future__ import annotations

import io
from contextlib import contextmanager
from datetime import date  # noqa: TC003  # SQLAlchemy reads the annotations
from typing import TYPE_CHECKING, Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from sqlalchemy import BigInteger, Column, MetaData, Table, create_engine, make_url, text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from laurels.engine import Laurels
from laurels.index import Indexes, LeaderboardIndex, install, leaderboard
from laurels.index.declare import declared
from laurels.index.installed import installed

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path

    from laurels.embedded import Endpoints

ENV = """
from alembic import context
import laurels.index.alembic
from sqlalchemy import NullPool, create_engine

given = context.config.attributes
options = {"target_metadata": given["metadata"], **given["options"]}
if context.is_offline_mode():
    context.configure(url=given["url"], **options)
    with context.begin_transaction():
        context.run_migrations()
else:
    with create_engine(given["url"], poolclass=NullPool).connect() as connection:
        context.configure(connection=connection, **options)
        with context.begin_transaction():
            context.run_migrations()
"""
TEMPLATE = """
from alembic import op
import sqlalchemy as sa

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}

def upgrade():
    ${upgrades if upgrades else "pass"}

def downgrade():
    ${downgrades if downgrades else "pass"}
"""


class Project:
    """An application with Alembic: each revision is made from the models as they are then."""

    def __init__(self, folder: Path, url: str) -> None:
        (folder / "versions").mkdir(parents=True)
        (folder / "env.py").write_text(ENV)
        (folder / "script.py.mako").write_text(TEMPLATE)
        self.folder, self.url = folder, url
        self._revisions = 0

    def revision(self, metadata: MetaData | Sequence[MetaData], **options: Any) -> str:  # noqa: ANN401  # of Alembic
        """Autogenerates a revision, and upgrades to it; returns the lines of its two functions."""
        self._revisions += 1
        config = self._config(metadata, **options)
        command.revision(config, autogenerate=True, rev_id=str(self._revisions))
        command.upgrade(config, "head")
        (script,) = (self.folder / "versions").glob(f"{self._revisions}_*.py")
        return "\n".join(line.strip() for line in script.read_text().partition("def upgrade")[2].splitlines())

    def downgrade(self, metadata: MetaData) -> None:
        command.downgrade(self._config(metadata), "-1")

    def upgrade(self, metadata: MetaData) -> None:
        command.upgrade(self._config(metadata), "head")

    def is_in_step(self, metadata: MetaData | Sequence[MetaData], **options: Any) -> bool:  # noqa: ANN401  # as above
        with self.connected() as connection:
            context = MigrationContext.configure(connection, opts=options)
            given: Any = metadata  # the types of Alembic know no list
            return not compare_metadata(context, given)

    def sql(self, metadata: MetaData, *, down: str | None = None) -> str:
        config = self._config(metadata)
        config.output_buffer = io.StringIO()
        if down:
            command.downgrade(config, down, sql=True)
        else:
            command.upgrade(config, "head", sql=True)
        return config.output_buffer.getvalue()

    def run(self, script: str) -> None:
        """Runs SQL as a person would: the whole text at once."""
        with self.connected() as connection:
            driver: Any = connection.connection.driver_connection
            driver.execute(script.encode())

    @contextmanager
    def connected(self) -> Generator[Any]:
        engine = create_engine(self.url)
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            yield connection
        engine.dispose()

    def indexes(self) -> list[str]:
        with self.connected() as connection:
            return list(installed(connection))

    def _config(self, metadata: MetaData | Sequence[MetaData], **options: Any) -> Config:  # noqa: ANN401  # as above
        config = Config()
        config.set_main_option("script_location", str(self.folder))
        config.stdout = io.StringIO()
        config.attributes.update(metadata=metadata, url=self.url, options=options)
        return config


@pytest.fixture
def project(tmp_path: Path, empty_database: str) -> Project:
    # The role of the tests is called as our schema, which would be its default one.
    url = make_url(empty_database).update_query_dict({"options": "-csearch_path=public"})
    return Project(tmp_path / "migrations", url.render_as_string(hide_password=False))


def with_scores(*indexes: LeaderboardIndex) -> type[Any]:
    """A model whose table stays the same, with these indexes."""

    class Base(DeclarativeBase):
        pass

    class GameScore(Base):
        __tablename__ = "game_scores"
        __leaderboards__ = indexes
        id: Mapped[str] = mapped_column(primary_key=True)
        region: Mapped[str]
        day: Mapped[date]
        score: Mapped[int] = mapped_column(BigInteger)

    return GameScore


PLAIN = LeaderboardIndex(score="score")
GROUPED = LeaderboardIndex(score="score", group_by=["day", "region"])


def test_an_added_index_is_created_after_its_table_and_dropped_before_it(project: Project):
    model = with_scores(GROUPED)
    script = project.revision(model.metadata)
    upgrade, _, downgrade = script.partition("def downgrade")
    created = (
        "op.create_leaderboard('game_scores', 'score', key={'id': 'text'}, "
        "group_by={'day': 'date', 'region': 'text'})"
    )
    assert upgrade.index("op.create_table('game_scores'") < upgrade.index(created)
    assert downgrade.index("op.drop_leaderboard('game_scores.score')") < downgrade.index("op.drop_table(")
    assert project.indexes() == ["game_scores.score"]
    assert project.is_in_step(model.metadata)
    project.downgrade(model.metadata)
    assert project.indexes() == []
    project.upgrade(model.metadata)
    assert project.is_in_step(model.metadata)


def test_a_changed_index_is_replaced_in_place_and_its_downgrade_puts_back_what_was_there(project: Project):
    before, after = with_scores(PLAIN), with_scores(GROUPED)
    project.revision(before.metadata)
    with project.connected() as connection:
        connection.execute(
            text("INSERT INTO game_scores (id, region, day, score) VALUES ('ada', 'asia', '2025-10-24', 7)")
        )
    script = project.revision(after.metadata)
    assert "drop_leaderboard" not in script  # records would lose the moments of their entries
    assert script.count("op.create_leaderboard('game_scores', 'score', key={'id': 'text'}") == 2
    with project.connected() as connection:
        assert connection.execute(text("SELECT count(*) FROM laurels_index.outbox")).scalar_one() == 1
        assert installed(connection)["game_scores.score"].is_of(declared(after)[0])
    project.downgrade(after.metadata)
    with project.connected() as connection:
        assert installed(connection)["game_scores.score"].is_of(declared(before)[0])


def test_a_removed_index_is_dropped_and_its_downgrade_creates_it_again(project: Project):
    both = with_scores(PLAIN, LeaderboardIndex(score="score", name="by-region", group_by=["region"]))
    project.revision(both.metadata)
    script = project.revision(with_scores(PLAIN).metadata)
    upgrade, _, downgrade = script.partition("def downgrade")
    assert "op.drop_leaderboard('game_scores.by-region')" in upgrade
    assert (
        "op.create_leaderboard('game_scores', 'score', key={'id': 'text'}, group_by={'region': 'text'}, "
        "name='by-region')"
    ) in downgrade
    assert project.indexes() == ["game_scores.score"]
    project.downgrade(both.metadata)
    assert project.is_in_step(both.metadata)


def test_a_removed_table_takes_its_index_along_and_both_come_back(project: Project):
    model = with_scores(GROUPED)
    project.revision(model.metadata)
    script = project.revision(MetaData())
    upgrade, _, downgrade = script.partition("def downgrade")
    assert upgrade.index("op.drop_leaderboard(") < upgrade.index("op.drop_table(")
    assert downgrade.index("op.create_table(") < downgrade.index("op.create_leaderboard(")
    assert project.indexes() == []
    project.downgrade(model.metadata)
    assert project.is_in_step(model.metadata)


def test_an_index_of_members_brings_its_indexes_on_the_table_along(project: Project):
    both = with_scores(
        LeaderboardIndex(score="score", member="region", windows=["all_time"]),
        LeaderboardIndex(score="score", member="region", aggregate="sum", name="total"),
    )
    script = project.revision(both.metadata)
    assert "member={'region': 'text'}, best_of_all_time=True)" in script
    assert project.is_in_step(both.metadata)
    found = "SELECT count(*) FROM pg_indexes WHERE tablename = 'game_scores' AND indexname LIKE 'laurels%'"
    with project.connected() as connection:
        assert connection.execute(text(found)).scalar_one() == 2
    project.revision(with_scores(PLAIN).metadata)
    with project.connected() as connection:
        assert connection.execute(text(found)).scalar_one() == 1  # what was replaced is still there
    project.downgrade(both.metadata)
    assert project.is_in_step(both.metadata)
    project.upgrade(both.metadata)
    project.revision(MetaData())
    with project.connected() as connection:
        assert connection.execute(text(found)).scalar_one() == 0


def test_windows_and_order_need_no_migration(project: Project):
    project.revision(with_scores(PLAIN).metadata)
    other = LeaderboardIndex(score="score", window="monthly", keep=2, order="asc")
    assert project.is_in_step(with_scores(other).metadata)


@pytest.mark.parametrize(
    "damage", ["DROP TRIGGER {}_delete ON", "ALTER TABLE {1} DISABLE TRIGGER {0}_update --"]
)
def test_triggers_that_are_gone_or_disabled_are_installed_again(project: Project, damage: str):
    model = with_scores(PLAIN)
    project.revision(model.metadata)
    with project.connected() as connection:
        function = connection.execute(
            text("SELECT proname FROM pg_proc WHERE pronamespace = 'laurels_index'::regnamespace")
        ).scalar_one()
        connection.execute(text(damage.format(function, "game_scores") + " game_scores"))
    assert not project.is_in_step(model.metadata)
    project.revision(model.metadata)
    assert project.is_in_step(model.metadata)


async def test_what_install_and_alembic_make_is_the_same(project: Project):
    model = with_scores(GROUPED)
    engine = create_async_engine(project.url)
    async with engine.begin() as connection:
        await connection.run_sync(model.metadata.create_all)
    await install(engine, model, notify=False)
    await engine.dispose()
    assert project.is_in_step(model.metadata)
    script = project.revision(with_scores(PLAIN).metadata)
    assert script.count("notify=False") == 2  # a change keeps how it was installed


def test_offline_mode_prints_statements_that_psql_can_run(project: Project):
    class Base(DeclarativeBase):
        pass

    class Odd(Base):  # pyright: ignore[reportUnusedClass]  # its metadata is used
        __tablename__ = "odd:name"
        __leaderboards__ = (LeaderboardIndex(score="score", name="odd"),)
        id: Mapped[int] = mapped_column("a:b", primary_key=True)
        score: Mapped[int] = mapped_column(BigInteger)

    project.revision(Base.metadata)
    upward, downward = project.sql(Base.metadata), project.sql(Base.metadata, down="1:base")
    project.run(downward)
    assert project.indexes() == []
    project.run("DROP TABLE alembic_version")
    project.run(upward)
    assert project.indexes() == ["odd:name.odd"]
    assert project.is_in_step(Base.metadata)


def test_tables_of_laurels_are_not_proposed_for_dropping(project: Project):
    model = with_scores(PLAIN)
    project.revision(model.metadata)
    with project.connected() as connection:
        connection.execute(text("CREATE SCHEMA laurels"))
        connection.execute(text("CREATE TABLE laurels.boards (id bigint PRIMARY KEY, name text UNIQUE)"))
        connection.execute(text("CREATE SCHEMA other"))
        connection.execute(text("CREATE TABLE other.abandoned (id bigint)"))
    script = project.revision(model.metadata, include_schemas=True)

    assert "laurels" not in script
    assert "op.drop_table('abandoned', schema='other')" in script
    assert project.is_in_step(model.metadata, include_schemas=True)


def test_a_table_of_the_application_in_a_schema_of_that_name_is_its_own(project: Project):
    metadata = MetaData(schema="laurels")
    Table("wreaths", metadata, Column("id", BigInteger))
    with project.connected() as connection:
        connection.execute(text("CREATE SCHEMA laurels"))
    assert "op.create_table('wreaths'" in project.revision(metadata, include_schemas=True)
    assert project.is_in_step(metadata, include_schemas=True)


def test_indexes_on_tables_that_autogenerate_does_not_look_at_stay(project: Project):
    project.revision(with_scores(PLAIN).metadata)

    def only_others(name: str | None, kind: str, _: dict[str, Any]) -> bool:
        return kind != "table" or name != "game_scores"

    assert project.is_in_step(MetaData(), include_name=only_others)
    assert not project.is_in_step(MetaData())


def test_indexes_of_several_metadata_and_schemas_are_seen(project: Project):
    class Other(DeclarativeBase):
        metadata = MetaData(schema="games")

    class Take(Other):  # pyright: ignore[reportUnusedClass]  # as above
        __tablename__ = "takes"
        __leaderboards__ = (PLAIN,)
        id: Mapped[int] = mapped_column(primary_key=True)
        score: Mapped[int] = mapped_column(BigInteger)

    with project.connected() as connection:
        connection.execute(text("CREATE SCHEMA games"))
    both = [with_scores(PLAIN).metadata, Other.metadata]
    script = project.revision(both, include_schemas=True)
    assert "op.create_leaderboard('takes', 'score', key={'id': 'integer'}, schema='games')" in script
    assert project.indexes() == ["game_scores.score", "games.takes.score"]
    assert project.is_in_step(both, include_schemas=True)
    assert "games.takes.score" in project.revision(both[:1], include_schemas=True)
    assert project.indexes() == ["game_scores.score"]


def test_an_index_that_lost_its_table_is_dropped_and_cannot_be_restored(project: Project):
    model = with_scores(PLAIN)
    project.revision(model.metadata)
    with project.connected() as connection:
        connection.execute(text("DROP TABLE game_scores"))
    script = project.revision(MetaData())
    assert "op.drop_leaderboard('game_scores.score')" in script
    assert "pass  # game_scores.score had no triggers left" in script
    project.downgrade(model.metadata)
    assert project.indexes() == []


async def test_a_migrated_database_ranks_what_is_committed(project: Project, endpoints: Endpoints):
    model = with_scores(GROUPED)
    project.revision(model.metadata)
    engine = create_async_engine(project.url)
    async with (
        Laurels(valkey_url=endpoints.valkey_url, postgres_url=endpoints.postgres_url) as laurels,
        Indexes(laurels, engine, model, project="migrated") as index,
    ):
        async with engine.begin() as connection:
            await connection.execute(
                text(
                    "INSERT INTO game_scores (id, region, day, score) "
                    "VALUES ('ada', 'asia', '2025-10-24', 7), ('bob', 'asia', '2025-10-24', 9)"
                )
            )
        await index.caught_up()
        top = await leaderboard(model).group("2025-10-24", "asia").top(10)
        assert [(each.rank, each.item.id) for each in top] == [(1, "bob"), (2, "ada")]
    await engine.dispose()
