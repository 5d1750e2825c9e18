"""Every snippet of the documentation runs: pages are played from top to bottom, on real servers."""

from __future__ import annotations

import configparser
import json
import re
import shutil
import tomllib
from typing import TYPE_CHECKING

import pytest
from places import fast_place, folder_that_anybody_may_pass
from played import ROOT, Reader, Snippet, pages, snippets
from sqlalchemy import make_url

from laurels import embedded
from laurels.cli.boards_file import read_boards
from laurels.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from laurels.embedded import Endpoints

TUTORIALS = [*pages("docs/tutorials")]
# Each supposes a Laurels that runs, with a board my-game/high-scores.
HOW_TO = [ROOT / "docs" / "how-to" / f"{name}.md" for name in ("back-up", "cluster", "deploy", "upgrade")]
# Each supposes stores of the reader's own.
ON_OWN_STORES = {
    "campus.md",
    "campus-from-the-shell.md",
    "django-app.md",
    "existing-app.md",
    "migrations.md",
    "move-from-redis.md",
}
PLAYED = [
    *TUTORIALS,
    *HOW_TO,
    *(ROOT / "docs" / "how-to" / f"{name}.md" for name in ("migrations", "move-from-redis")),
]
# Pages that a test of their own runs.
ELSEWHERE = {
    "README.md": "tests/test_docs.py",
    "docs/how-to/sign-submissions.md": "tests/client/test_client_signatures.py",
    "docs/reference/board-definition.md": "tests/cli/test_cli_docs.py",
    "docs/reference/client.md": "tests/client/test_client_docs.py",
    "docs/reference/leaders.md": "tests/http/test_http_leaders.py",
    "docs/reference/models.md": "tests/index/test_index_docs.py",
    "docs/how-to/own-database.md": "tests/postgres/test_own_database.py",
    "docs/reference/settings.md": "tests/valkey/test_requirements.py",
}
# What is read here but cannot run, and why.
NOT_RUN = {
    "ini": "a unit of systemd; its sections are parsed",
    "nginx": "needs a certificate and nginx; its blocks are parsed",
    "caddy": "needs a public name and Caddy; its blocks are parsed",
    "html": "a template that a page plays, or a tag that tests/web/test_web_embed.py opens in such a page",
    "text": "what the block before it prints, or a picture of letters",
    "json": "what the block before it answers; parsed",
}
ALL = [
    snippet
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for snippet in snippets(page)
]


@pytest.fixture
def place() -> Generator[Path]:
    with folder_that_anybody_may_pass(fast_place()) as place:
        (place / "work").mkdir()
        yield place


@pytest.fixture
def stores(place: Path) -> Generator[Endpoints]:
    with embedded.start(place / "stores") as servers:
        yield servers.endpoints


def settings_of(place: Path, stores: Endpoints) -> dict[str, str]:
    return {
        "LAURELS_DATA_DIR": str(place / "data"),
        "LAURELS_VALKEY_URL": stores.valkey_url,
        "LAURELS_POSTGRES_URL": stores.postgres_url,
        "LAURELS_DURABILITY": "fast",  # there are no replicas
    }


def as_libpq(stores: Endpoints) -> dict[str, str]:
    """How a client of PostgreSQL finds the stores without a URL."""
    url = make_url(stores.postgres_url)
    found = {"PGHOST": url.query.get("host") or url.host, "PGUSER": url.username, "PGPASSWORD": url.password}
    return {name: str(value) for name, value in found.items()}


@pytest.mark.parametrize(
    "page", [page for page in TUTORIALS if page.name not in ON_OWN_STORES], ids=lambda page: page.stem
)
def test_a_tutorial_plays_from_top_to_bottom(page: Path, place: Path):
    with Reader(place / "work", {"LAURELS_DATA_DIR": str(place / "data")}, {}) as reader:
        reader.play(page)


@pytest.mark.parametrize(
    "page", [page for page in PLAYED if page.name in ON_OWN_STORES], ids=lambda page: page.stem
)
def test_a_page_plays_on_stores_of_the_readers_own(page: Path, place: Path, stores: Endpoints):
    if page.stem == "campus-from-the-shell" and shutil.which("redis-cli") is None:
        pytest.skip("needs redis-cli, which `make test` installs as root")
    meant = {
        "redis-cli ": f"redis-cli -s {stores.valkey_url.removeprefix('unix://')} ",
        "redis://127.0.0.1:6379": stores.valkey_url,
        "postgresql://localhost/laurels": stores.postgres_url.replace("+psycopg", ""),
        "postgresql+psycopg://localhost/game": stores.postgres_url,
        '"NAME": "arcade"': f'"NAME": "{make_url(stores.postgres_url).database}"',
        "runserver": "runserver --noreload",  # which would outlive the page
    }
    with Reader(place / "work", settings_of(place, stores) | as_libpq(stores), meant) as reader:
        reader.play(page)


@pytest.fixture(scope="module")
def running() -> Generator[dict[str, str]]:
    """The settings of a Laurels that runs, on stores of its own, with the board my-game/high-scores."""
    with folder_that_anybody_may_pass(fast_place()) as place, embedded.start(place / "stores") as servers:
        settings = settings_of(place, servers.endpoints)
        with Reader(place, settings, {}) as reader:
            reader.leave_running("laurels serve")
            reader.run("""echo '["my-game/high-scores"]' > first.toml; laurels apply first.toml""")
            yield settings | {"LAURELS_PORT": reader.ports["8000"]}


@pytest.mark.parametrize("page", HOW_TO, ids=lambda page: page.stem)
def test_a_how_to_plays_beside_a_laurels_that_runs(page: Path, place: Path, running: dict[str, str]):
    with Reader(place / "work", running, {}) as reader:
        reader.play(page)


def test_every_page_with_snippets_is_played_or_tested_elsewhere():
    run = {page.relative_to(ROOT).as_posix() for page in PLAYED}
    for page, test in ELSEWHERE.items():
        assert (ROOT / page).is_file()
        assert (ROOT / test).is_file()
    for snippet in ALL:
        if snippet.page not in run and snippet.page not in ELSEWHERE:
            assert snippet.language in NOT_RUN, f"{snippet.page}, line {snippet.line}: say what runs it"


@pytest.mark.parametrize("snippet", ALL, ids=lambda each: f"{each.page}:{each.line}")
def test_a_snippet_is_what_its_language_says(snippet: Snippet, tmp_path: Path):
    match snippet.language:
        case "toml" if '["' in snippet.code and "/" in snippet.code.partition("]")[0]:
            path = tmp_path / "boards.toml"
            path.write_text(snippet.code)
            assert read_boards(path)
        case "toml":
            Settings.model_validate(tomllib.loads(snippet.code))
        case "json":
            json.loads(snippet.code)
        case "ini":
            unit = configparser.ConfigParser(strict=False, interpolation=None)
            unit.optionxform = str  # pyright: ignore[reportAttributeAccessIssue]  # as systemd has them
            unit.read_string(snippet.code)
            assert unit["Service"]["ExecStart"].endswith("laurels serve")
        case "nginx" | "caddy":
            code = re.sub(r"#.*", "", snippet.code)
            assert code.count("{") == code.count("}") > 0
        case "python":
            compile(snippet.code, snippet.page, "exec", flags=0x2000)  # ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        case language:
            assert language in {"sh", "sql", "js", "csharp", *NOT_RUN}, (
                "say what runs it, or why nothing does"
            )
