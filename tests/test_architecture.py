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

# What each room may use of the others at run time. A room not listed here is new: say where it belongs.
MAY_USE = {
    "arguments": set[str](),
    "errors": set[str](),
    "masking": set[str](),
    "wording": {"errors"},
    "moments": {"errors"},
    "clock": {"moments"},
    "metrics": set[str](),
    "settings": {"errors", "masking", "wording"},
    "logs": {"masking"},
    "outcomes": set[str](),
    "signing": set[str](),
    "valkey": {"errors", "logs", "outcomes"},
    "archive": {
        "errors",
        "logs",
        "masking",
        "moments",
        "outcomes",
        "boards.definition",  # a definition is a value, and pure
        "wording",
    },
    "embedded": {"errors"},
    "boards": {"errors", "logs", "moments", "valkey", "wording"},
    "history": {"archive", "boards", "errors", "logs", "metrics", "moments", "valkey"},
    "ratings": {"boards", "errors", "valkey"},
    "activity": {"archive", "boards", "errors", "logs", "metrics", "moments", "valkey"},
    "jobs": {"archive", "boards.zones", "errors", "logs", "moments"},  # what they do, the engine does
    "laurels": {
        "activity",
        "archive",
        "boards",
        "clock",
        "embedded",
        "errors",
        "history",
        "jobs",
        "ratings",
        "settings",
        "valkey",
        "wording",
    },
    # Of the engine only what it is handed: records are in the user's own database, beside the archive.
    "index": {"boards", "errors", "logs", "moments", "valkey", "wording"},
    "sync": {"laurels"},
    # Over HTTP: of the engine only the values that go in and out, which are pure.
    "client": {
        "boards.answers",
        "boards.changes",
        "boards.definition",
        "boards.keys",
        "boards.submission",
        "errors",
        "ratings.match",
        "signing",
    },
    "demo": {"activity", "boards", "clock", "errors", "moments"},
    "doctor": {"archive", "embedded", "errors", "history", "masking", "settings", "valkey"},
    "api": {
        "activity.rankings",  # the names of scopes, periods and their project, and values in and out
        "activity.scoring",
        "activity.summary",
        "archive",
        "boards",
        "doctor",  # its findings are asked for by HTTP too
        "errors",
        "jobs",
        "history",
        "laurels",
        "logs",
        "metrics",
        "moments",
        "ratings.match",
        "signing",
        "valkey.functions",  # a session of the console begins by one
        "valkey.messages",
        "valkey.names",
        "wording",
    },
    "cli": {
        "activity.rankings",  # the name of the campuses' project
        "activity.simulator",  # the plan of a demo is a value
        "api",
        "archive",
        "boards",
        "demo",
        "doctor",
        "embedded",
        "errors",
        "history.parquet_file",  # a form of files, as gzip is
        "jobs",
        "laurels",
        "logs",
        "settings",
        "wording",
    },
    "": {"boards", "laurels"},
}

PURE = {
    "activity.badges",
    "activity.counters",
    "activity.days",
    "activity.events",
    "activity.fold",
    "activity.guard",
    "activity.keys",
    "activity.message",
    "activity.policy",
    "activity.scoring",
    "activity.simulator",
    "activity.streaks",
    "boards.answers",
    "boards.arrivals",
    "boards.board",
    "boards.changes",
    "boards.claims",
    "boards.cursor",
    "boards.declared",
    "boards.definition",
    "boards.durations",
    "boards.journal",
    "boards.keys",
    "boards.leaders",
    "boards.message",
    "boards.ordering",
    "boards.patterns",
    "boards.preview",
    "boards.rating",
    "boards.submission",
    "boards.templates",
    "boards.tiling",
    "boards.windows",
    "boards.zones",
    "client.events",
    "client.steps",
    "history.answers",
    "history.bookmark",
    "history.export_file",
    "history.fold",
    "history.mentions",
    "history.policy",
    "index.fusion",
    "index.positions",
    "jobs.schedule",
    "moments",
    "ratings.elo",
    "ratings.glicko2",
    "ratings.match",
    "ratings.openskill",
    "ratings.sheet",
    "ratings.state",
    "ratings.systems",
    "signing",
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

# Where each client may be imported. `doctor` judges foreign servers, in SQL of their own; `index` works in
# the database of the models that it is declared on.
ROOMS = {
    "redis": {"valkey"},
    "sqlalchemy": {"archive", "doctor", "index"},
    "alembic": {"archive"},
    "psycopg": {"archive"},
    "fastapi": {"api"},
    "httpx": {"client"},
    "jwt": {"api"},
    "limits": {"api", "settings"},
    "pgvector": {"index"},
    "pyarrow": {"history"},
    "starlette": {"api"},
    "typer": {"cli"},
    "rich": {"cli"},
    "uvicorn": {"cli"},
}


def name_of(path: Path) -> str:
    """`boards.keys` for src/laurels/boards/keys.py; a package is named as its folder, the whole as ``""``."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text())


def nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Everything that runs: what stands under `if TYPE_CHECKING` does not."""
    yield node
    for child in ast.iter_child_nodes(node):
        if (
            isinstance(child, ast.If)
            and isinstance(child.test, ast.Name)
            and child.test.id == "TYPE_CHECKING"
        ):
            continue
        yield from nodes(child)


@cache
def imports(module: str) -> frozenset[str]:
    """By full name: `redis.asyncio`, `laurels.boards.keys`."""
    found: set[str] = set()
    for node in nodes(tree(module)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{module} imports by a relative name"
            submodules = {f"{node.module}.{alias.name}" for alias in node.names}
            inner = {name for name in submodules if name.removeprefix("laurels.") in MODULES}
            found |= inner if inner == submodules else {*inner, node.module}
    return frozenset(found)


def used(module: str) -> set[str]:
    """Our own modules that this one imports: `boards.keys`."""
    ours = {name.removeprefix("laurels").removeprefix(".") for name in imports(module) if is_ours(name)}
    return {name if name in MODULES else name.rpartition(".")[0] for name in ours}


def is_ours(name: str) -> bool:
    return name == "laurels" or name.startswith("laurels.")


def is_within(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def room_of(module: str) -> str:
    return module.partition(".")[0]


def test_every_room_is_on_the_map():
    assert {room_of(module) for module in MODULES} == MAY_USE.keys()


@pytest.mark.parametrize("module", MODULES)
def test_arrows_point_one_way(module: str):
    room = room_of(module)
    beyond = {other for other in used(module) if room_of(other) != room}
    assert {
        other for other in beyond if not any(is_within(other, allowed) for allowed in MAY_USE[room])
    } == set()


def test_no_room_uses_one_that_uses_it():
    waiting = {room: {name.split(".")[0] for name in uses} for room, uses in MAY_USE.items()}
    waiting["archive"].discard("boards")  # only the pure definition, which uses nothing of the archive
    while free := {room for room, uses in waiting.items() if not uses & waiting.keys()}:
        waiting = {room: uses for room, uses in waiting.items() if room not in free}
    assert waiting == {}


@pytest.mark.parametrize("client", ROOMS)
def test_each_client_has_one_room(client: str):
    rooms = {
        room_of(module) for module in MODULES if any(is_within(name, client) for name in imports(module))
    }
    assert rooms <= ROOMS[client]


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
    assert makers == {"boards.zones"}


@pytest.mark.parametrize("module", MODULES)
def test_every_name_in_all_exists(module: str):
    if "__all__" not in MODULES[module].read_text():
        return
    loaded = importlib.import_module(f"laurels.{module}".rstrip("."))
    assert [name for name in loaded.__all__ if not hasattr(loaded, name)] == []
    assert sorted(loaded.__all__) == list(loaded.__all__)


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
    callers = ("valkey.functions", "valkey.activity", "valkey.requirements")
    stubs = "".join(MODULES[name].read_text() for name in callers)
    assert registered == set(re.findall(r'"(laurels_\w+)"', stubs))


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
