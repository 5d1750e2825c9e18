"""`manage.py check`: wrong declarations and settings, each with its class, field and fix."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
from django.apps import apps
from django.core.checks import CheckMessage, Error, Tags, register
from django.db import connections, router

from laurels.django.configuration import Configuration, configuration
from laurels.django.index import LeaderboardIndex, leaderboards_of
from laurels.django.twins import twin_of
from laurels.errors import InvalidInput
from laurels.wording import suggestion

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from django.apps import AppConfig
    from django.db.models import Model

# What the rules of declarations say of SQLAlchemy, in Django's words.
_WORDS: Final = {
    "use BigInteger,": "use BigIntegerField,",
    "use DateTime(timezone=True)": "use DateTimeField",
    "column": "field",
    "`name`": "`label`",
}


@register(Tags.models)
def check_declarations(
    app_configs: Sequence[AppConfig] | None = None, databases: Sequence[str] | None = None, **_: Any
) -> list[CheckMessage]:
    models = [model for config in app_configs or apps.get_app_configs() for model in config.get_models()]
    declaring = [model for model in models if any(leaderboards_of(model))]
    found: list[CheckMessage] = []
    for model in declaring:
        found += _wrong_declarations(model)
        found += _wrong_databases(model, databases or ())
    return found


@register()
def check_settings(**_: Any) -> list[CheckMessage]:
    from django.conf import settings  # noqa: PLC0415  # the checks are registered before it is complete

    given: object = getattr(settings, "LAURELS", {})
    known = [field.encode_name for field in msgspec.structs.fields(Configuration)]
    if isinstance(given, dict) and (
        unknown := [str(name) for name in cast("dict[str, Any]", given) if name not in known]
    ):
        return [
            Error(
                f"settings.LAURELS has no {name!r}.",
                hint=_sentence(suggestion(name, known)),
                id="laurels.E003",
            )
            for name in unknown
        ]
    try:
        configuration()
    except msgspec.ValidationError as error:
        return [Error(f"settings.LAURELS is wrong: {error}.", id="laurels.E003")]
    return []


def _wrong_declarations(model: type[Model]) -> Iterator[CheckMessage]:
    labels = Counter(index.label for index in leaderboards_of(model))
    for number, index in enumerate(model._meta.indexes):
        if not isinstance(index, LeaderboardIndex):
            continue
        where = f"{model._meta.label}.Meta.indexes[{number}] ({index.label})"
        if labels[index.label] > 1:
            yield Error(
                f"{where}: another leaderboard of the model has the same label.",
                hint=f"Give each its own, such as label='{index.label}-weekly'.",
                obj=model,
                id="laurels.E001",
            )
        if index.name != _name(model, index):
            yield Error(
                f"{where}.name: Django's name of a leaderboard follows from its model.",
                hint="Leave it out; label= names the leaderboard.",
                obj=model,
                id="laurels.E001",
            )
        try:
            twin_of(model, [index.on(model)])
        except InvalidInput as error:
            field = error.fields[0].field.rpartition(")")[2].strip(".")
            yield Error(
                f"{where}{'.' if field else ''}{field}: {_in_django(error.fields[0].detail)}.",
                obj=model,
                id="laurels.E001",
            )


def _wrong_databases(model: type[Model], databases: Sequence[str]) -> Iterator[CheckMessage]:
    for alias in databases:
        vendor = connections[alias].vendor
        if router.allow_migrate_model(alias, model) and vendor != "postgresql":
            yield Error(
                f"{model._meta.label} declares a leaderboard, and the database {alias!r} is {vendor}.",
                hint="Leaderboards need PostgreSQL: use django.db.backends.postgresql, or a database router.",
                obj=model,
                id="laurels.E002",
            )


def _name(model: type[Model], index: LeaderboardIndex) -> str:
    named = index.clone()
    named.set_name_with_model(model)
    return named.name


def _in_django(detail: str) -> str:
    for word, ours in _WORDS.items():
        detail = detail.replace(word, ours)
    return detail


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
