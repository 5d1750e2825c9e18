"""A schema of its own for each test: as good as a database, and made in milliseconds."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import NullPool, create_engine, make_url, text

from laurels.postgres.engine import Archive, open_archive
from laurels.postgres.migrate import migrate

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from laurels.embedded import Endpoints

_numbers = count(1)


@pytest.fixture
def empty_url(endpoints: Endpoints) -> str:
    """Where nothing has been done yet."""
    schema = f"archive_{next(_numbers)}"
    server = create_engine(endpoints.postgres_url, poolclass=NullPool)
    with server.begin() as connection:
        connection.execute(text(f"CREATE SCHEMA {schema}"))
    url = make_url(endpoints.postgres_url).update_query_dict({"options": f"-csearch_path={schema}"})
    return url.render_as_string(hide_password=False)


@pytest.fixture
def postgres_url(empty_url: str) -> str:
    """Where the tables are."""
    migrate(empty_url)
    return empty_url


@pytest.fixture
async def archive(postgres_url: str) -> AsyncGenerator[Archive]:
    async with open_archive(postgres_url) as archive:
        yield archive
