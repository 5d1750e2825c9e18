"""What the pages are built of, and how much of it a reader waits for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import api_types
import build_pages
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_BYTES = 200_000
"""Of compressed script, until a page is first seen."""
PAGES = ("home", "leaderboards", "boards", "console", "docs")


@pytest.fixture(scope="module")
def manifest(built: None) -> dict[str, Any]:
    return json.loads((build_pages.OUT / ".vite" / "manifest.json").read_text())


def needed(manifest: dict[str, Any], *names: str) -> set[str]:
    """The scripts that must be there before these can run."""
    found: set[str] = set()

    def walk(name: str) -> Iterator[str]:
        yield manifest[name]["file"]
        for imported in manifest[name].get("imports", ()):
            yield from walk(imported)

    for name in names:
        found.update(walk(name))
    return found


def compressed(script: str) -> int:
    """By gzip, which every browser takes; brotli is smaller still."""
    path = build_pages.OUT / script
    smaller = path.with_name(f"{path.name}.gz")
    return (smaller if smaller.exists() else path).stat().st_size


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_seen_before_200_kilobytes_of_script(manifest: dict[str, Any], page: str):
    scripts = needed(manifest, "index.html", f"src/pages/{page}/index.tsx")
    assert len(scripts) > 1
    assert sum(map(compressed, scripts)) < MOST_BYTES


def test_an_embedded_board_needs_half_of_that(manifest: dict[str, Any]):
    assert sum(map(compressed, needed(manifest, "embed.html"))) < MOST_BYTES / 2


def test_every_page_waits_for_itself_alone(manifest: dict[str, Any]):
    first = needed(manifest, "index.html")
    for page in PAGES:
        assert manifest[f"src/pages/{page}/index.tsx"]["file"] not in first


def test_nothing_is_built_when_nothing_changed(built: None):
    assert build_pages.is_built()
    assert build_pages.build() is False


def test_the_units_hold(built: None):
    build_pages.run_package("vitest/vitest.mjs", "run", "--reporter=dot")


def test_the_types_are_those_of_the_api():
    line = api_types.TYPES.read_text().partition("\n")[0] + "\n"
    assert line == api_types.first_line(api_types.document()), "the API changed: run `make types`"


def test_the_lock_file_names_no_place_to_download_from():
    assert '"resolved"' not in (build_pages.HERE / "package-lock.json").read_text()
