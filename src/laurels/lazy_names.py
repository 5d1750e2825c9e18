"""Public names that are imported when they are first used, so that a program pays for those that it uses."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """The `__getattr__` of a package (PEP 562). `homes`: the module of each name.

    No name may also be a submodule of the package: whichever is imported last would be found.
    """

    def find(name: str) -> object:
        if name in homes:
            return getattr(import_module(homes[name]), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find
