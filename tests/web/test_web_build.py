"""What the pages are built of, and how much of it a reader waits for."""

from __future__ import annotations

from typing import Any

import api_types
import build_pages
import pytest
from build_pages import PAGES, needed


@pytest.fixture(scope="module")
def manifest(built: None) -> dict[str, Any]:
    return build_pages.manifest_of(build_pages.OUT)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_seen_before_200_kilobytes_of_script(manifest: dict[str, Any], page: str):
    scripts = needed(manifest, "index.html", f"src/pages/{page}/index.tsx")
    assert len(scripts) > 1
    assert build_pages.script_bytes(build_pages.OUT, "index.html", f"src/pages/{page}/index.tsx") < 200_000


def test_an_embedded_board_needs_half_of_that(built: None):
    assert build_pages.script_bytes(build_pages.OUT, "embed.html") < 100_000


def test_pages_that_are_too_heavy_are_not_built(built: None, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(build_pages, "MOST_BYTES", 10_000)
    with pytest.raises(build_pages.CannotBuild, match=r"home takes .* bytes of compressed script"):
        build_pages.check_weight(build_pages.OUT)


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
