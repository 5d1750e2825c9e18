"""The examples in the documentation of the code run as they stand."""

from __future__ import annotations

import asyncio
import doctest
from typing import TYPE_CHECKING

import pytest

from laurels import engine, sync
from laurels.ratings import elo, glicko2, match, state, systems
from laurels.scores import submission

if TYPE_CHECKING:
    from types import ModuleType

    from laurels.embedded import Endpoints


MODULES = [engine, sync, submission, elo, glicko2, match, state, systems]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
async def test_the_examples_of_a_module_hold(
    module: ModuleType, endpoints: Endpoints, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("LAURELS_VALKEY_URL", endpoints.valkey_url)
    monkeypatch.setenv("LAURELS_POSTGRES_URL", endpoints.postgres_url)
    failed, tried = await asyncio.to_thread(doctest.testmod, module)
    assert tried > 0
    assert failed == 0
