"""The examples of the client's documentation run as they stand, against a real server."""

from __future__ import annotations

import asyncio
import doctest
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import laurels.client
from laurels.client import Client, Refused, events, retries
from laurels.client.errors import NotUnderstood, Unreachable
from laurels.client.options import ClientOptions

if TYPE_CHECKING:
    from types import ModuleType

    from .conftest import Served

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "client.md"
EXAMPLE = re.compile(r"^```python\n(.*?)^```$(?:\n+```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


def test_the_examples_of_the_page_print_what_it_says(
    served: Served, project: str, capsys: pytest.CaptureFixture[str]
):
    examples = EXAMPLE.findall(PAGE.read_text())
    assert len(examples) > 4
    here = {"http://127.0.0.1:8000": served.address, "lk_…": served.key, "my-game": project}
    names: dict[str, Any] = {}
    try:
        for number, (code, printed) in enumerate(examples):
            for written, meant in here.items():
                code = code.replace(written, meant)  # noqa: PLW2901  # the same example, at this server
            exec(compile(code, f"client.md, example {number}", "exec"), names)  # noqa: S102  # it is ours
            assert capsys.readouterr().out == printed
    finally:
        for name in ("client", "nobody"):
            if name in names:
                names[name].close()


@pytest.mark.parametrize("module", [laurels.client, events, retries], ids=lambda module: module.__name__)
async def test_the_examples_of_a_module_of_the_client_hold(module: ModuleType, served: Served):
    given = {"address": served.address, "key": served.key}
    failed, tried = await asyncio.to_thread(doctest.testmod, module, extraglobs=given)
    assert tried > 0
    assert failed == 0


def test_every_operation_option_and_error_is_on_the_page():
    page = PAGE.read_text()
    operations = [name for name in vars(Client) if not name.startswith("_")]
    named = set(re.findall(r"`(\w+)`", page))
    assert {*operations} - named <= {"close", "run", "iterate"}
    assert ClientOptions.__annotations__.keys() <= named
    assert {kind.__name__ for kind in (Refused, NotUnderstood, Unreachable)} <= named
