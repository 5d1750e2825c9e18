"""`LAURELS` in Django's settings. What it leaves out, `LAURELS_*` in the environment says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections
from sqlalchemy import URL

from laurels.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

# Of Django's own; whatever else OPTIONS has is a parameter of libpq.
_NOT_OF_LIBPQ: Final = {"pool", "isolation_level", "assume_role", "server_side_binding", "cursor_factory"}


class Configuration(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="upper"):
    """How Laurels runs in this process."""

    valkey_url: str | None = None
    """By default Laurels starts a Valkey of its own, or joins the one of another process here."""
    postgres_url: str | None = None
    """For Laurels' own tables; by default Django's default database."""
    data_dir: str | None = None
    """Where an own Valkey keeps its data."""
    project: str | None = None
    """The project of the boards; by default the name of the database."""
    maintain: bool = True
    """Whether a process that reads leaderboards also applies commits to them; else `manage.py laurels run`
    does.
    """


def configuration() -> Configuration:
    """Raises `msgspec.ValidationError` for unknown or wrong settings; `manage.py check` says which."""
    return msgspec.convert(getattr(settings, "LAURELS", {}), Configuration)


def own_postgres_url(chosen: Configuration) -> str | None:
    """Where Laurels keeps its own tables; None where the environment says so."""
    if chosen.postgres_url or load_settings().postgres_url:
        return chosen.postgres_url
    return url_of(DEFAULT_DB_ALIAS).render_as_string(hide_password=False)


def url_of(alias: str) -> URL:
    """The URL of one of Django's databases; in a test, of the test's."""
    given: Mapping[str, Any] = connections[alias].settings_dict
    options = {name: str(value) for name, value in given["OPTIONS"].items() if name not in _NOT_OF_LIBPQ}
    # A HOST may be the folder of a socket, which has no place in a URL but as a parameter.
    if given["HOST"]:
        options["host"] = given["HOST"]
    if given["PORT"]:
        options["port"] = str(given["PORT"])
    return URL.create(
        "postgresql+psycopg",
        username=given["USER"] or None,
        password=given["PASSWORD"] or None,
        database=given["NAME"] or None,
        query=options,
    )


def project_of(chosen: Configuration, alias: str) -> str:
    """A project for each database, so that tests share no boards with what they test."""
    name = chosen.project or str(connections[alias].settings_dict["NAME"] or alias)
    return re.sub(r"[^A-Za-z0-9._-]", "-", name)[:64]
