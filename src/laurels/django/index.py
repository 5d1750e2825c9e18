"""A leaderboard as an index of a model's `Meta`: Django's own migrations add and remove it."""

from __future__ import annotations

import re
from copy import copy
from dataclasses import fields
from inspect import getattr_static
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from django.db import models
from django.db.backends.utils import split_identifier
from django.db.models.signals import class_prepared

from laurels import index as models_of_sqlalchemy
from laurels.django.twins import declared_of, field_name
from laurels.errors import InvalidInput
from laurels.index.declare import digest
from laurels.index.triggers import ddl_of, removal_of_triggers
from laurels.wording import suggestion

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.db.backends.base.schema import BaseDatabaseSchemaEditor

    from laurels.django.ranking import ModelRanking

Row = TypeVar("Row", bound=models.Model)

# What a migration needs: the captured columns. The rest is in Valkey.
CAPTURED: Final = ("group_by", "member", "at", "on_update")
DECLARABLE: Final = [
    field.name for field in fields(models_of_sqlalchemy.LeaderboardIndex) if field.name not in {"name", "_"}
]
NOTHING: Final = "SELECT 1"
# Of a table's name in Django's name of an index, which has at most 30 characters.
STEM: Final = 20


class LeaderboardIndex(models.Index):
    """One leaderboard over the rows of a model; takes the fields of `laurels.index.LeaderboardIndex`.

    `label` is what `leaderboard.index(…)` takes: by default the score. Django's `name` and `table` follow
    from the model, and only migrations give them.
    """

    suffix = "lb"

    def __init__(
        self,
        score: str,
        *,
        label: str = "",
        name: str = "",
        table: str = "",
        **declared: Any,
    ) -> None:
        """Fields are checked by `manage.py check`, which knows the model."""
        super().__init__(fields=[score], name=name)
        # Django would check and create them as columns of an index of its own.
        self.fields = []
        self.fields_orders = []
        self.score = score
        self.label = label or score
        self.table = table
        self.declared = declared

    @property
    def index_name(self) -> str:
        """The name in the database: `scores_gamescore.score`."""
        return ".".join((*filter(None, split_identifier(self.table)), self.label))

    def set_name_with_model(self, model: type[models.Model]) -> None:
        self.table = model._meta.db_table
        stem = re.sub(r"[^A-Za-z]+", "_", split_identifier(self.table)[1]).strip("_")[:STEM]
        self.name = f"{stem or 'index'}_{digest(self.index_name)[:6]}_{self.suffix}"

    def on(self, model: type[models.Model]) -> models_of_sqlalchemy.LeaderboardIndex:
        """The declaration, with the names of the model's fields. Raises `InvalidInput` for unknown fields."""
        for name in self.declared:
            if name not in DECLARABLE:
                raise InvalidInput.at(
                    name, f"is not a field of a leaderboard; {suggestion(name, DECLARABLE)}"
                )
        declared: dict[str, Any] = {name: _named(model, name, value) for name, value in self.declared.items()}
        return models_of_sqlalchemy.LeaderboardIndex(
            field_name(model, self.score), name=self.label, **declared
        )

    def create_sql(  # pyright: ignore[reportIncompatibleMethodOverride]  # Django runs a text as well
        self,
        model: type[models.Model],
        schema_editor: BaseDatabaseSchemaEditor,
        using: str = "",
        **_: Any,
    ) -> str:
        if schema_editor.connection.vendor != "postgresql":
            return NOTHING
        return _joined(ddl_of(declared_of(model, self.on(model), self.index_name)))

    def remove_sql(
        self,
        model: type[models.Model],
        schema_editor: BaseDatabaseSchemaEditor,
        **_: Any,
    ) -> str:
        """Leaves the moments of records in place: a change is a removal and an addition. What is orphaned is
        removed after the migrations (`migrated`).
        """
        if schema_editor.connection.vendor != "postgresql":
            return NOTHING
        return _joined(removal_of_triggers(self.index_name)).replace("%", "%%")

    def clone(self) -> LeaderboardIndex:
        """Everything, unlike `deconstruct`: Django gives a model clones of what its `Meta` has."""
        return copy(self)

    def deconstruct(self) -> tuple[str, tuple[()], dict[str, Any]]:
        """What a migration needs; the name is needed by Django, and the table by its renames."""
        captured = {name: self.declared[name] for name in CAPTURED if name in self.declared}
        if self._finds_best_of_all_time():
            captured["windows"] = ["all_time"]
        given = {"score": self.score, "label": self.label, "table": self.table, "name": self.name}
        return "laurels.django.LeaderboardIndex", (), given | captured

    def _finds_best_of_all_time(self) -> bool:
        """Whether an index on the table finds a member's best row (`description.is_best_of_all_time`)."""
        return (
            "member" in self.declared
            and self.declared.get("aggregate", "best") == "best"
            and "all_time" in (self.declared.get("windows") or [self.declared.get("window")])
        )

    def __repr__(self) -> str:
        return f"<LeaderboardIndex: {self.index_name}>"


def leaderboards_of(model: type[models.Model]) -> Iterator[LeaderboardIndex]:
    """The leaderboards that a model declares, in order."""
    yield from (index for index in model._meta.indexes if isinstance(index, LeaderboardIndex))


class Leaderboards:
    """`GameScore.leaderboard`, of the class alone."""

    def __init__(self, declarer: type[models.Model]) -> None:
        self._declarer = declarer

    def __get__(self, instance: models.Model | None, owner: type[Row]) -> ModelRanking[Row]:
        from laurels.django.ranking import ModelRanking  # noqa: PLC0415  # imports the engine: at the first read

        if instance is not None:
            raise AttributeError(f"leaderboard is of the class: write {owner.__name__}.leaderboard")
        return ModelRanking(owner, self._declarer)


def _attach(sender: type[models.Model], **_: object) -> None:
    """Gives each model with leaderboards its `leaderboard`, unless it has something else of this name."""
    there = getattr_static(sender, "leaderboard", None)
    if any(leaderboards_of(sender)) and (there is None or isinstance(there, Leaderboards)):
        sender.leaderboard = Leaderboards(sender)  # pyright: ignore[reportAttributeAccessIssue]  # it is new


def _named(model: type[models.Model], declared: str, value: object) -> object:
    """Fields by their name, where the declaration may have their attribute."""
    if declared in {"at", "member"} and isinstance(value, str):
        return field_name(model, value)
    if declared == "group_by" and isinstance(value, list | tuple):
        names = cast("list[Any]", value)
        return [field_name(model, name) if isinstance(name, str) else name for name in names]
    return value


def _joined(statements: list[str]) -> str:
    return ";\n".join(statements)


class_prepared.connect(_attach)
