"""The documentation is true: links lead somewhere, examples run, decisions name what holds them."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from pydoc import locate
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from laurels.embedded import Endpoints

ROOT = Path(__file__).parents[1]
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
]
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
SECTIONS = ["Question", "Decision", "Why", "Cost", "Held by"]
# A file's name, and two fields in a file of Parquet.
NO_MODULES = {"laurels.toml", "laurels.manifest", "laurels.end"}
KINDS_OF_CHANGE = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```$|`[^`\n]*`", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(text: str) -> set[str]:
    """The names that GitHub gives to headings."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_every_link_leads_somewhere(page: Path):
    for link in re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text())):
        if re.match(r"[a-z]+:", link):
            assert link.startswith("https://"), link
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        assert target.is_relative_to(ROOT), link
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target.read_text()), link


def test_every_page_is_in_the_index():
    index = ROOT / "docs" / "README.md"
    linked = re.findall(r"\]\(([^)#\s]+)\)", index.read_text())
    pages = set((ROOT / "docs").glob("*.md")) - {index}
    assert pages <= {(index.parent / link).resolve() for link in linked}


def test_the_readmes_example_prints_what_it_says(
    endpoints: Endpoints, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    example = re.search(
        r"^```python\n(.*?)^```\n+```text\n(.*?)^```",
        (ROOT / "README.md").read_text(),
        re.MULTILINE | re.DOTALL,
    )
    assert example is not None
    monkeypatch.setenv("LAURELS_VALKEY_URL", endpoints.valkey_url)
    monkeypatch.setenv("LAURELS_POSTGRES_URL", endpoints.postgres_url)
    exec(compile(example[1], "README.md", "exec"), {})  # noqa: S102  # it is ours, and the point
    assert capsys.readouterr().out == example[2]


def test_the_readme_names_commands_that_there_are():
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    for page in PAGES:
        assert set(re.findall(r"(?:`|^)make ([a-z]+)", page.read_text(), re.MULTILINE)) <= targets, page


def test_contributing_names_every_room_and_its_answers_are_there():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    rooms, _, questions = text.partition("### Ten questions of a stranger")
    package = ROOT / "src" / "laurels"
    named = set(re.findall(r"^\| `(\w+)/` \|", rooms, re.MULTILINE))
    assert named == {path.parent.name for path in package.glob("*/__init__.py")}
    answers = re.findall(r"^\| .+\? \| `(.+)` \|$", questions, re.MULTILINE)
    assert len(answers) == 10
    for answer in answers:
        assert (package / answer).exists(), answer


def test_the_flows_of_the_architecture_go_through_modules_that_there_are():
    text = (ROOT / "docs" / "explanation" / "architecture.md").read_text()
    flows = text.partition("## The flows")[2].partition("\n## ")[0]
    modules = re.findall(r"`(\w+/\w+)`", flows)
    assert len(modules) > 30
    for module in modules:
        assert (ROOT / "src" / "laurels" / f"{module}.py").is_file(), module


@pytest.mark.parametrize("page", [*PAGES, ROOT / "web" / "README.md"], ids=shown)
def test_modules_that_a_page_names_are_there(page: Path):
    package = ROOT / "src" / "laurels"
    rooms = "|".join(sorted(path.parent.name for path in package.glob("*/__init__.py")))
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    files = re.findall(r"`([\w./-]+/[\w.-]+\.(?:py|lua|tsx?))`", text)
    in_rooms = re.findall(rf"`((?:{rooms})/[\w/]*)`", text)
    for name in {*files, *in_rooms}:
        places = [folder / name for folder in (ROOT, package, package / "valkey", ROOT / "web")]
        assert any(place.exists() or place.with_suffix(".py").exists() for place in places), name
    for name in re.findall(r"`(laurels(?:\.\w+)+)`", text):
        assert name in NO_MODULES or locate(name), name


def test_decisions_are_numbered_without_gaps_and_listed():
    index = (ROOT / "docs" / "decisions" / "README.md").read_text()
    assert [path.name[:5] for path in DECISIONS] == [f"{n:04}-" for n in range(1, len(DECISIONS) + 1)]
    listed = re.findall(r"^\| \[(\d{4})\]\((.+?)\) \| (.+?) \|$", index, re.MULTILINE)
    titles = [re.match(r"# (\d{4}): (.+)\n", path.read_text()) for path in DECISIONS]
    assert [(number, title) for number, _, title in listed] == [title.groups() for title in titles if title]
    assert [name for _, name, _ in listed] == [path.name for path in DECISIONS]


@pytest.mark.parametrize("page", DECISIONS, ids=shown)
def test_every_decision_ends_in_what_holds_it(page: Path):
    text = page.read_text()
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == SECTIONS
    held_by = text.partition("## Held by")[2]
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", held_by)
    assert named
    for file, test in named:
        assert (ROOT / file).is_file(), file
        assert not test or re.search(rf"^(async )?def {test}\(", (ROOT / file).read_text(), re.MULTILINE), (
            test
        )


def test_the_changelog_is_in_order():
    text = (ROOT / "CHANGELOG.md").read_text()
    first, *released = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert first == "[Unreleased]"
    parsed = [re.fullmatch(r"\[(\d+)\.(\d+)\.(\d+)\] - (\d{4}-\d\d-\d\d)", heading) for heading in released]
    versions = [tuple(map(int, each.groups()[:3])) for each in parsed if each]
    days = [date.fromisoformat(each[4]) for each in parsed if each]
    assert len(versions) == len(released)
    assert versions == sorted(versions, reverse=True)
    assert days == sorted(days, reverse=True)
    assert set(re.findall(r"^### (.+)$", text, re.MULTILINE)) <= KINDS_OF_CHANGE
