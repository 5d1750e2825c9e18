"""docs/ as a site: it builds without a broken link, and needs nothing from another machine."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import build_guide
import hooks
import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def pages() -> list[Path]:
    build_guide.build()
    return sorted(build_guide.OUT.rglob("*.html"))


def test_the_guide_builds_and_every_link_leads_somewhere(pages: list[Path]):
    assert build_guide.OUT / "reference" / "http.html" in pages
    assert (build_guide.OUT / "search" / "search_index.json").stat().st_size > 100_000


def test_a_broken_link_fails_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for path in build_guide.ROOT.iterdir():
        if path.name != "docs":
            (tmp_path / path.name).symlink_to(path)
    shutil.copytree(build_guide.ROOT / "docs", tmp_path / "docs")
    with (tmp_path / "docs" / "how-to" / "embed.md").open("a") as page:
        page.write("\n[one](nowhere.md), [two](deploy.md#no-such-heading)\n")
    monkeypatch.setattr(build_guide, "ROOT", tmp_path)
    monkeypatch.setattr(build_guide, "OUT", tmp_path / "guide.built")
    with pytest.raises(build_guide.CannotBuild, match=r"(?s)nowhere\.md.+no-such-heading"):
        build_guide.build(force=True)


def test_nothing_is_built_when_nothing_changed(pages: list[Path]):
    assert build_guide.is_built()
    assert build_guide.build() is False


def test_the_guide_loads_nothing_from_another_machine(pages: list[Path]):
    for page in pages:
        loaded = re.findall(r"<(?:link|script|img|iframe)[^>]*(?:src|href)=\"?([^\"\s>]+)", page.read_text())
        assert loaded
        assert [address for address in loaded if re.match(r"[a-z]+:|//", address)] == [], page
    for style in build_guide.OUT.rglob("*.css"):
        assert not re.search(r"(?:url\(|@import )['\"]?(?:https?:)?//", style.read_text()), style


def test_the_guide_has_no_script_within_its_pages(pages: list[Path]):
    for page in pages:
        assert re.findall(r"<script>|\son[a-z]+=", page.read_text()) == [], page


def test_no_list_is_swallowed_by_the_paragraph_before_it(pages: list[Path]):
    for page in pages:
        assert re.findall(r"<p>[^<]*\n- ", page.read_text()) == [], page


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("[a](b.md#c)", "[a](b.md#c)"),
        ("[a](../reference/cli.md)", "[a](../reference/cli.md)"),
        ("[a](../../CONTRIBUTING.md)", "[a](../contributing.md)"),
        ("[a](../../README.md)", "[a](../README.md)"),
        ("[a](../../examples/framedle/README.md)", "[a](../examples/framedle.md)"),
        ("[`boards`](../../examples/framedle/boards.toml)", "`boards`"),
        ("[a](https://example.com)", "[a](https://example.com)"),
        ("`[a](b)`", "`[a](b)`"),
        ("[gone](../../gone.md)", "[gone](../gone.md)"),
    ],
)
def test_links_lead_to_where_the_guide_has_their_pages(markdown: str, shown: str):
    assert hooks.linked(markdown, "docs/how-to/page.md", "how-to/page.md") == shown
