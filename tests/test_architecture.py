"""The shape of the code: what may import what, what is pure, what every file must say."""

from __future__ import annotations

import ast
import importlib
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "laurels"
LUA = sorted((PACKAGE / "valkey" / "lua").glob("*.lua"))

MOST_LINES = 500

# What each room may use of the others, imports for types included; rooms stand below those that they use.
# A room not listed here is new: say where it belongs.
MAY_USE = {
    "arguments": set[str](),
    "errors": set[str](),
    "lazy_names": set[str](),
    "list_cursor": {"errors"},
    "masking": set[str](),
    "metrics": set[str](),
    "outcomes": set[str](),
    "wording": {"errors"},
    "moments": {"errors"},
    "clock": {"moments"},
    "deadline": set[str](),
    "together": set[str](),
    "settings": {"errors", "masking", "wording"},
    "logs": {"masking", "settings"},
    "embedded": {"errors"},
    "valkey": {"errors", "logs", "outcomes"},
    "postgres": {"errors", "logs", "masking", "outcomes"},
    "jobs": {"activity", "boards", "clock", "errors", "history", "journal", "logs", "moments", "postgres"},
    "boards": {"clock", "errors", "logs", "moments", "postgres", "valkey", "wording"},
    # What a score leaves in the journal: scores/ writes it, journal/ drains it.
    "journal.entry": {"boards.ordering", "moments"},
    "scores": {
        "arguments",
        "boards",
        "clock",
        "errors",
        "journal.entry",
        "logs",
        "moments",
        "together",
        "valkey",
        "wording",
    },
    "access": {
        "boards.names",
        "clock",
        "deadline",
        "together",
        "errors",
        "logs",
        "metrics",
        "moments",
        "postgres",
        "scores.submission",
        "settings",
        "valkey",
        "wording",
    },
    "journal": {
        "boards",
        "clock",
        "errors",
        "journal.entry",
        "logs",
        "metrics",
        "moments",
        "postgres",
        "scores",
        "valkey",
    },
    "history": {
        "arguments",
        "boards",
        "clock",
        "errors",
        "journal",
        "journal.entry",
        "list_cursor",
        "logs",
        "moments",
        "people",
        "postgres",
        "scores",
        "valkey",
    },
    "people": {
        "arguments",
        "boards.names",
        "boards.timezones",
        "errors",
        "list_cursor",
        "postgres",
        "scores",
        "valkey",
        "wording",
    },
    "ratings": {"boards", "clock", "errors", "journal.entry", "moments", "scores", "valkey"},
    "activity": {"boards", "clock", "errors", "logs", "moments", "people", "postgres", "scores", "valkey"},
    "engine": {
        "access",
        "activity",
        "arguments",
        "boards",
        "clock",
        "embedded",
        "errors",
        "history",
        "jobs",
        "journal",
        "people",
        "postgres",
        "ratings",
        "scores",
        "settings",
        "valkey",
        "wording",
    },
    # Records are in the user's own database; of the engine it uses what it is handed.
    "index": {
        "boards",
        "clock",
        "engine",
        "errors",
        "lazy_names",
        "logs",
        "moments",
        "scores",
        "sync",
        "valkey",
        "wording",
    },
    "sync": {"arguments", "engine"},
    # Django's models are indexed by way of `index`; their process has one Laurels, without async.
    "django": {"errors", "index", "lazy_names", "settings", "sync", "wording"},
    # Over HTTP: of the engine only the values that go in and out, which are pure.
    "client": {
        "access.signing",
        "arguments",
        "boards.defined",
        "boards.definition",
        "boards.keys",
        "boards.ordering",
        "boards.preview",
        "boards.windows",
        "errors",
        "history.records",
        "jobs.state",
        "people.records",
        "ratings.match",
        "scores.results",
        "scores.submission",
        "scores.view_diff",
        "valkey.messages",
    },
    "demo": {"activity", "engine", "errors", "moments", "scores"},
    "doctor": {
        "activity.store.people",
        "boards.store",
        "embedded",
        "errors",
        "index",
        "jobs.state",
        "jobs.store",
        "journal.streams",
        "masking",
        "postgres",
        "settings",
        "valkey",
    },
    "http": {
        "access",
        "activity",
        "arguments",
        "boards",
        "deadline",
        "together",
        "doctor",
        "engine",
        "errors",
        "history",
        "jobs",
        "logs",
        "metrics",
        "moments",
        "people",
        "postgres",
        "ratings.match",
        "scores",
        "settings",
        "valkey",
        "wording",
    },
    "cli": {
        "",
        "access",
        "activity",
        "boards",
        "demo",
        "doctor",
        "embedded",
        "engine",
        "errors",
        "history",
        "http",
        "jobs",
        "journal",
        "logs",
        "people",
        "ratings",
        "scores",
        "settings",
        "wording",
    },
    "": {"boards", "engine", "lazy_names", "scores"},
}
# Classes whose name another class has too, and why.
MAY_SHARE_A_NAME = {
    "Command": "Django finds a management command by this name",
    "Indexes": "as `Laurels`",
    "Laurels": "the engine, async and not: a program imports the one that it needs",
    "LeaderboardIndex": "what SQLAlchemy's models declare, and Django's: a program has one kind of models",
    "Place": "where people belong, and where `laurels.index` found an item in a list",
    "Ranking": "as `Laurels`",
    "Snapshot": "a schema of the API, and an update that `laurels.client` offers",
    "Window": "`laurels` and `laurels.index` each offer one: what a board declares, and what a model has had",
}
IN_ROUTES = {"Health"}

# Modules that are rooms of their own on the map.
VALUES_THAT_ROOMS_SHARE = {"journal.entry"}

PURE = {
    "arguments",
    "access.signing",
    "activity.accumulate",
    "activity.badges",
    "activity.counters",
    "activity.days",
    "activity.events",
    "activity.guard",
    "activity.policy",
    "activity.scoring",
    "activity.simulator",
    "activity.streaks",
    "activity.valkey_keys",
    "boards.unique_moments",
    "boards.board",
    "boards.claims",
    "boards.declared",
    "boards.defined",
    "boards.definition",
    "boards.durations",
    "boards.keys",
    "boards.leaders",
    "boards.names",
    "boards.ordering",
    "boards.patterns",
    "boards.preview",
    "boards.rating",
    "boards.recent",
    "boards.templates",
    "boards.recurrence",
    "boards.timezones",
    "boards.windows",
    "client.events",
    "client.steps",
    "history.export_file",
    "list_cursor",
    "history.name_matcher",
    "history.records",
    "history.snapshot_policy",
    "index.fusion",
    "index.positions",
    "index.results",
    "jobs.schedule",
    "jobs.state",
    "journal.entry",
    "journal.member_fold",
    "moments",
    "people.csv_rows",
    "people.records",
    "ratings.elo",
    "ratings.glicko2",
    "ratings.match",
    "ratings.openskill",
    "ratings.sheet",
    "ratings.state",
    "ratings.systems",
    "scores.page_cursor",
    "scores.page_query",
    "scores.payload",
    "scores.results",
    "scores.submission",
    "scores.view_diff",
    "valkey.messages",
    "valkey.names",
    "wording",
}
CLIENTS_AND_CLOCKS = {
    "aiohttp", "anyio", "asyncio", "fastapi", "httpx", "multiprocessing", "psycopg", "random", "redis",
    "secrets", "selectors", "socket", "sqlalchemy", "starlette", "subprocess", "threading", "time",
    "urllib.request", "uuid", "uvicorn",
}  # fmt: skip
ASKS_THE_CLOCK = {"now", "today", "utcnow", "time", "time_ns", "monotonic"}

# Where each client may be imported. SQL stands with the room that asks: `store` is a room's own part of
# PostgreSQL. `doctor` judges foreign servers, in SQL of their own; `index` works in the database of the
# models that it is declared on.
ROOMS = {
    "redis": {"valkey"},
    "sqlalchemy": {"django", "postgres", "doctor", "index"},
    "alembic": {"index", "postgres"},
    "psycopg": {"postgres"},
    "django": {"django"},
    "fastapi": {"http"},
    "httpx": {"client"},
    "jwt": {"access"},
    "limits": {"access", "settings"},
    "pgvector": {"index"},
    "pyarrow": {"history"},
    "starlette": {"http"},
    "typer": {"cli"},
    "rich": {"cli"},
    "uvicorn": {"cli", "http"},
}


def name_of(path: Path) -> str:
    """`boards.keys` for src/laurels/boards/keys.py; a package is named as its folder, the whole as ``""``."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text())


def nodes(node: ast.AST, *, types: bool = False) -> Iterator[ast.AST]:
    """Everything that runs; with `types` also what stands under `if TYPE_CHECKING`."""
    yield node
    for child in ast.iter_child_nodes(node):
        for_types = (
            isinstance(child, ast.If)
            and isinstance(child.test, ast.Name)
            and child.test.id == "TYPE_CHECKING"
        )
        if types or not for_types:
            yield from nodes(child, types=types)


@cache
def imports(module: str, *, types: bool = False) -> frozenset[str]:
    """By full name: `redis.asyncio`, `laurels.boards.keys`."""
    found: set[str] = set()
    for node in nodes(tree(module), types=types):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{module} imports by a relative name"
            submodules = {f"{node.module}.{alias.name}" for alias in node.names}
            inner = {name for name in submodules if name.removeprefix("laurels.") in MODULES}
            found |= inner if inner == submodules else {*inner, node.module}
    return frozenset(found)


def used(module: str, *, types: bool = False) -> set[str]:
    """Our own modules that this one imports: `boards.keys`."""
    ours = {
        name.removeprefix("laurels").removeprefix(".")
        for name in imports(module, types=types)
        if is_ours(name)
    }
    return {name if name in MODULES else name.rpartition(".")[0] for name in ours}


def is_ours(name: str) -> bool:
    return name == "laurels" or name.startswith("laurels.")


def is_within(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def room_of(module: str) -> str:
    return module if module in VALUES_THAT_ROOMS_SHARE else module.partition(".")[0]


def test_every_room_is_on_the_map():
    assert {room_of(module) for module in MODULES} == MAY_USE.keys()


def arrows_beyond_the_map(module: str) -> set[str]:
    room = room_of(module)
    beyond = {other for other in used(module, types=True) if room_of(other) != room}
    return {other for other in beyond if not any(is_within(other, allowed) for allowed in MAY_USE[room])}


@pytest.mark.parametrize("module", MODULES)
def test_arrows_point_one_way(module: str):
    assert arrows_beyond_the_map(module) == set()


def test_no_room_uses_one_that_uses_it():
    waiting = {room: {room_of(name) for name in uses} for room, uses in MAY_USE.items()}
    waiting["journal.entry"].discard("boards")  # only the pure ordering, which uses nothing of the journal
    while free := {room for room, uses in waiting.items() if not uses & waiting.keys()}:
        waiting = {room: uses for room, uses in waiting.items() if room not in free}
    assert waiting == {}


@pytest.mark.parametrize("client", ROOMS)
def test_each_client_has_one_room(client: str):
    users = {module for module in MODULES if any(is_within(name, client) for name in imports(module))}
    elsewhere = {module for module in users if room_of(module) not in ROOMS[client]}
    if client in {"sqlalchemy", "psycopg"}:
        elsewhere = {module for module in elsewhere if "store" not in module.split(".")}
    assert elsewhere == set()


def test_routes_are_declared_in_one_way():
    """As operations: FastAPI is the app, and an answer is no Pydantic model."""
    users = {module: imports(module, types=True) for module in MODULES if is_within(module, "http")}
    assert {module for module in users if any(is_within(name, "fastapi") for name in users[module])} == {
        "http.app"
    }
    assert [
        module for module in users if is_within(module, "http.routes") and "pydantic" in users[module]
    ] == []


@pytest.mark.parametrize("module", sorted(PURE))
def test_pure_modules_have_no_client_no_clock_and_no_await(module: str):
    assert {
        name for name in imports(module) if any(is_within(name, each) for each in CLIENTS_AND_CLOCKS)
    } == set()
    for node in nodes(tree(module)):
        assert not isinstance(node, ast.Await | ast.AsyncFunctionDef | ast.AsyncFor | ast.AsyncWith), (
            f"line {node.lineno} waits"
        )
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            assert node.func.attr not in ASKS_THE_CLOCK, f"line {node.lineno} asks the clock"


@pytest.mark.parametrize("module", sorted(PURE))
def test_pure_modules_use_pure_modules_alone(module: str):
    assert used(module) <= PURE | {"errors"}


def test_zones_are_made_in_one_place():
    makers = {
        module
        for module in MODULES
        for node in nodes(tree(module))
        if isinstance(node, ast.Call) and "ZoneInfo" in ast.unparse(node.func)
    }
    assert makers == {"boards.timezones"}


@pytest.mark.parametrize("module", MODULES)
def test_every_name_in_all_exists(module: str):
    if "__all__" not in MODULES[module].read_text():
        return
    loaded = importlib.import_module(f"laurels.{module}".rstrip("."))
    assert [name for name in loaded.__all__ if not hasattr(loaded, name)] == []
    assert sorted(loaded.__all__) == list(loaded.__all__)


# By its text: to parse every module takes seconds, which each process that collects the tests would spend.
@pytest.mark.parametrize(
    "package", sorted(name for name, path in MODULES.items() if "import lazy_names" in path.read_text())
)
def test_no_lazy_name_is_also_a_module(package: str):
    """After an import of the module, the package would answer with it."""
    modules = {name.removeprefix(package).removeprefix(".") for name in MODULES if is_within(name, package)}
    names = set(importlib.import_module(f"laurels.{package}".rstrip(".")).__all__)
    assert names & (modules if package else {room_of(name) for name in MODULES}) == set()


def test_no_two_classes_share_a_name():
    homes: dict[str, set[str]] = {}
    for module in MODULES:
        for node in ast.walk(tree(module)):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, set()).add(f"{module}:{node.lineno}")
    shared = {name: modules for name, modules in homes.items() if len(modules) > 1}
    assert {name for name in shared if name not in MAY_SHARE_A_NAME} == IN_ROUTES, shared


@pytest.mark.parametrize("module", MODULES)
def test_no_module_is_too_long(module: str):
    assert len(MODULES[module].read_text().splitlines()) <= MOST_LINES


@pytest.mark.parametrize("path", LUA, ids=lambda path: path.name)
def test_every_lua_file_describes_the_functions_that_it_registers(path: Path):
    code = path.read_text()
    header = re.match(r"(--.*\n)+", code)
    assert header is not None
    registered = re.findall(r"register_function\W+(?:function_name = ')?(\w+)'", code)
    assert [function for function in registered if function not in header[0]] == []


def test_every_function_in_valkey_has_a_stub_and_the_other_way_round():
    registered = {
        function
        for path in LUA
        for function in re.findall(r"register_function\W+(?:function_name = ')?(\w+)'", path.read_text())
    }
    stubs = "".join(path.read_text() for name, path in MODULES.items() if room_of(name) == "valkey")
    assert registered == set(re.findall(r'"(laurels_\w+)"', stubs))


def test_only_valkey_sends_raw_commands():
    """Every other room runs the typed commands of `valkey`; cli's commands are Typer's."""
    senders = {
        module
        for module in MODULES
        for node in nodes(tree(module))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in {"ask_primaries", "command", "commands", "execute_command", "pipeline"}
    }
    assert {module for module in senders if room_of(module) not in {"valkey", "cli"}} == set()
    makers = {
        module
        for module in MODULES
        for node in nodes(tree(module))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Command"
    }
    assert {room_of(module) for module in makers} == {"valkey"}


def test_every_dependency_is_pinned_once():
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    assert [line for line in lines if not re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]*", line)] == []
    pinned = [line.split("==")[0] for line in lines]
    assert len(set(pinned)) == len(pinned)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = [
        each for group in project["dependency-groups"].values() for each in group if isinstance(each, str)
    ]
    required = {re.split(r"[^a-z0-9-]", each)[0] for each in (*project["project"]["dependencies"], *groups)}
    assert required <= set(pinned)
