from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from places import fast_place, folder_that_anybody_may_pass

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def place() -> Iterator[Path]:
    with folder_that_anybody_may_pass(fast_place()) as folder:
        yield folder
