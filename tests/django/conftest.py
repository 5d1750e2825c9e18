"""Django in the process of the tests, on a database of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import django
import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connections
from sqlalchemy import make_url

if TYPE_CHECKING:
    from collections.abc import Generator

    from laurels.embedded import Endpoints

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "NAME": "league"}},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    INSTALLED_APPS=["laurels.django", "league"],
    LOGGING_CONFIG=None,
    USE_TZ=True,
)
django.setup()


@pytest.fixture(scope="session")
def database(endpoints: Endpoints) -> Generator[str]:
    """The tables and indexes of the models; Laurels' own tables are beside them."""
    from laurels.django import close  # noqa: PLC0415  # Django is set up above

    url = make_url(endpoints.postgres_url)
    default = connections["default"]
    default.settings_dict.update(
        NAME="postgres",
        USER=url.username,
        PASSWORD=url.password,
        HOST=url.query.get("host") or url.host or "",
    )
    if url.port:
        default.settings_dict["PORT"] = url.port
    with default.cursor() as cursor:
        cursor.execute("CREATE DATABASE league")
    default.close()
    default.settings_dict["NAME"] = "league"
    settings.LAURELS = {"VALKEY_URL": endpoints.valkey_url}
    call_command("migrate", run_syncdb=True, verbosity=0)
    yield "league"
    close()
    default.close()
    default.settings_dict["NAME"] = "postgres"
    with default.cursor() as cursor:
        cursor.execute("DROP DATABASE league WITH (FORCE)")
    default.close()


@pytest.fixture
def rows(database: str) -> Generator[None]:
    """Empty tables."""
    from django.apps import apps  # noqa: PLC0415  # as above

    yield
    with connections["default"].cursor() as cursor:
        for model in apps.get_models():
            cursor.execute(f"TRUNCATE {connections['default'].ops.quote_name(model._meta.db_table)} CASCADE")
