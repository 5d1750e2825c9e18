"""The page about indexes: its example prints what it says, and it names every field and method."""

from __future__ import annotations

import asyncio
import re
import sys
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from laurels.index import LeaderboardIndex, Ranking

if TYPE_CHECKING:
    import pytest

    from laurels.embedded import Endpoints

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "models.md"


async def test_the_example_prints_what_the_page_says(
    endpoints: Endpoints, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    found = re.search(
        r"^```python\n(.*?)^```\n```text\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL
    )
    assert found is not None
    monkeypatch.setenv("LAURELS_VALKEY_URL", endpoints.valkey_url)
    monkeypatch.setenv("LAURELS_POSTGRES_URL", endpoints.postgres_url)
    code = found[1].replace("postgresql+psycopg://localhost/game", endpoints.postgres_url)
    page = ModuleType("index_page")  # SQLAlchemy looks up the annotations of a class in its module
    monkeypatch.setitem(sys.modules, page.__name__, page)
    await asyncio.to_thread(exec, compile(code, "index.md", "exec"), vars(page))
    assert capsys.readouterr().out == found[2]


def test_every_field_and_question_is_on_the_page():
    page = PAGE.read_text()
    declared = {field.name for field in fields(LeaderboardIndex)}
    asked = {name for name in vars(Ranking) if not name.startswith("_")} - {
        field.name for field in fields(Ranking)
    }
    assert {name for name in declared if f"| `{name}` |" not in page} == set()
    assert {name for name in asked if f".{name}(" not in page} - {"declared", "where"} == set()
