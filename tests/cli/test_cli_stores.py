"""Stores that are named by URLs, and what can be wrong with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cli_processes import run
from sqlalchemy import NullPool, create_engine, text

if TYPE_CHECKING:
    from laurels.embedded import Endpoints

NOBODY_THERE = {
    "LAURELS_POSTGRES_URL": "postgresql://me:hush@127.0.0.1:1/none",
    "LAURELS_VALKEY_URL": "redis://127.0.0.1:1",
}


@pytest.fixture
def urls(endpoints: Endpoints, migrated_postgres_url: str) -> dict[str, str]:
    return {"LAURELS_VALKEY_URL": endpoints.valkey_url, "LAURELS_POSTGRES_URL": migrated_postgres_url}


def newer(urls: dict[str, str]) -> dict[str, str]:
    engine = create_engine(urls["LAURELS_POSTGRES_URL"], poolclass=NullPool)
    with engine.begin() as connection:
        connection.execute(text("UPDATE laurels.alembic_version SET version_num = '9999'"))
    return urls


def test_commands_use_the_stores_that_urls_name(urls: dict[str, str]):
    assert run("keys", "list", "--json", settings=urls).document == []


def test_newer_schema_is_reported(urls: dict[str, str]):
    newer(urls)
    assert "made by a newer Laurels (revision 9999)" in run("keys", "list", settings=urls).complaint
    assert "made by a newer Laurels" in run("serve", "--port", "0", settings=urls).complaint


def test_the_doctor_sees_a_newer_schema(urls: dict[str, str]):
    examined = run("doctor", settings=newer(urls))
    assert examined.code == 1
    assert "made by a newer Laurels" in examined.output


def test_silent_store_is_reported_without_its_password(urls: dict[str, str]):
    complaint = run("keys", "list", settings=NOBODY_THERE).complaint
    assert "PostgreSQL does not answer" in complaint
    assert "hush" not in complaint
    complaint = run("top", "a/b", settings=urls | {"LAURELS_VALKEY_URL": "redis://127.0.0.1:1"}).complaint
    assert "Valkey does not answer" in complaint


def test_malformed_url_is_reported():
    complaint = run("keys", "list", settings={"LAURELS_POSTGRES_URL": "mysql://db"}).complaint
    assert complaint.startswith("LAURELS_POSTGRES_URL must begin with postgres://")


def test_doctor_names_the_store_that_does_not_answer():
    examined = run("doctor", "--json", settings=NOBODY_THERE)
    assert examined.code == 1
    assert "hush" not in examined.output
    assert '"name":"PostgreSQL","status":"wrong"' in examined.output
    assert '"name":"Valkey","status":"wrong"' in examined.output
