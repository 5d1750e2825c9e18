"""Every key that Laurels makes is in the list of names, and no definition of a tenant can make one.

The tests run every operation of Laurels and ask the server which keys were touched. So a new key that is not
in `valkey/names.py` fails here.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import redis
from campus_stage import stores_apart
from everything import NAMED, NAMED_BOARD, NOON, Watch, do_everything
from hypothesis import given, settings
from hypothesis import strategies as st

from laurels.boards.board import Board
from laurels.boards.claims import check_apart, check_templates
from laurels.boards.definition import BoardDefinition, parse_definition
from laurels.boards.keys import BoardRef, Cut, KeySpace
from laurels.boards.patterns import Pattern
from laurels.boards.retention import PARTS
from laurels.clock import FixedClock
from laurels.engine import Laurels
from laurels.errors import InvalidInput
from laurels.moments import moment_of
from laurels.valkey import chunked_delete, names
from laurels.valkey.names import BOARD_NAMES, CAMPUS_WINDOW, LEADERS, RESERVED, REVOCATIONS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from laurels.embedded import Endpoints

SOURCE = Path(names.__file__).parents[1]
DATABASE = 11


class Keys(set[str]):
    """A set of keys that a failure does not print in full."""

    def __repr__(self) -> str:
        return f"{len(self)} keys"


@pytest.fixture(scope="module", params=["node", "cluster"])
async def touched(request: pytest.FixtureRequest, endpoints: Endpoints) -> AsyncGenerator[Keys]:
    """The keys of all operations of Laurels."""
    kind: str = request.param
    valkey_url, postgres_url = stores_apart(endpoints, f"names_on_{kind}", DATABASE)
    if kind == "cluster":
        valkey_url = request.getfixturevalue("cluster_url")
    untyped: Any = redis
    if kind == "cluster":
        asked = untyped.RedisCluster.from_url(valkey_url.replace("+cluster", ""))
        clients = [untyped.Redis(host=node.host, port=node.port) for node in asked.get_primaries()]
    else:
        clients = [untyped.Redis.from_url(valkey_url)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunked_delete, "MANY_ENTRIES", 5)
        patch.setenv("LAURELS_RATE_LIMIT_ADDRESS", "1000/second")
        found, channels = Keys(), set[str]()
        watches = [Watch(client, DATABASE if kind == "node" else 0) for client in clients]
        for watch in watches:
            watch.__enter__()
        try:
            clock = FixedClock(moment_of(NOON))
            async with Laurels(valkey_url=valkey_url, postgres_url=postgres_url, clock=clock) as laurels:
                await do_everything(laurels, clock)
        finally:
            for watch in watches:
                watch.__exit__()
        for watch in watches:
            found |= watch.keys()
            channels |= watch.channels()
    assert channels <= {REVOCATIONS}
    yield found
    for client in clients:
        client.flushdb()


LISTED = (*RESERVED, CAMPUS_WINDOW, LEADERS, f"{{{LEADERS[:-1]}")


def is_own(key: str) -> bool:
    return not key.lstrip("{").startswith(NAMED.rstrip(":"))


def test_every_key_that_is_touched_is_in_the_list(touched: Keys):
    assert {key for key in touched if is_own(key) and not key.startswith(LISTED)} == set()


def test_everything_in_the_list_is_touched(touched: Keys):
    """So the operations above cover all names."""
    on_cluster = any(key.startswith(names.CAMPUS_TAG) for key in touched)
    expected = {value for name, value in vars(names).items() if name.isupper() and isinstance(value, str)}
    expected -= {REVOCATIONS, names.CAMPUS_TAG, names.CAMPUS_WINDOW if on_cluster else names.CAMPUS_TAG}
    bare = {re.sub(r"^\{(campus:\d+\}|(?=laurels|/leaders))", "", key) for key in touched}
    assert {name for name in expected if not any(key.startswith(name) for key in bare)} == set()
    own = {
        match[1]
        for key in touched
        if (match := re.fullmatch(r".*lb:\{[^}]*\}(?::[^:/]+/[^:]+)?:(\w+)(?:[:|].*)?", key))
    }
    assert own >= BOARD_NAMES


PLACEHOLDERS = ["{slot}", "{yyyymmdd}", "{yyyy}", "{group.a}", ""]
WINDOWS: list[dict[str, Any]] = [
    {"period": "daily"},
    {"period": "every", "seconds": 1},
    {"period": "yearly"},
    {"period": "all_time"},
    {"period": "hourly"},
]
MINE = BoardRef("mine", "board")


SHARES = st.floats(0, 1)
CUTS = st.lists(st.tuples(SHARES, SHARES, st.sampled_from(PLACEHOLDERS)), max_size=2)


def with_placeholders(key: str, cuts: list[tuple[float, float, str]]) -> tuple[str, list[str]]:
    """The key with parts of it replaced, and those parts."""
    told: list[str] = []
    for start, length, placeholder in cuts:
        first = round(start * len(key))
        last = first + round(length * (len(key) - first))
        told.append(key[first:last])
        key = key[:first] + placeholder + key[last:]
    return key, told


@pytest.mark.parametrize("is_cluster", [False, True])
@settings(max_examples=500, deadline=None)
@given(number=st.integers(0), cuts=CUTS, window=st.sampled_from(WINDOWS), of_group=st.booleans())
def test_no_template_that_is_accepted_makes_a_key_that_is_touched(  # what Hypothesis draws
    touched: Keys,
    number: int,
    cuts: list[tuple[float, float, str]],
    window: dict[str, Any],
    of_group: bool,  # noqa: FBT001  # as Hypothesis gives it
    is_cluster: bool,  # noqa: FBT001  # as pytest gives it
):
    """The templates are the keys themselves with parts replaced by placeholders."""
    keys = sorted(touched)
    key = keys[number % len(keys)]
    template, told = with_placeholders(key, cuts)
    label = "every_1s" if window["period"] == "every" else window["period"]
    target = f"{label}:a" if of_group else label
    fields = {"windows": [window], "groups": [["a"]], "keys": {target: template}}
    try:
        definition = parse_definition(fields)
        own = check_templates(MINE, definition, cluster=is_cluster)
        check_apart(own, named_patterns(is_cluster=is_cluster), "another")
    except InvalidInput:
        return
    assert not any(
        pattern.meets(Pattern.of(key.partition("|")[0])) for made in own.values() for pattern in made
    )
    assert key not in set(keys_of(definition, label, told, is_cluster=is_cluster))


def named_patterns(*, is_cluster: bool) -> dict[str, tuple[Pattern, ...]]:
    definition = parse_definition(NAMED_BOARD)
    return KeySpace(BoardRef(NAMED[:-1], "daily"), definition, cluster=is_cluster).patterns(definition)


def keys_of(definition: BoardDefinition, label: str, values: list[str], *, is_cluster: bool) -> Iterator[str]:
    """The keys of a board with this definition, with these values in the placeholders."""
    board = Board(MINE, definition, 1, cluster=is_cluster)
    calendar = board.zoned_window(label).calendar
    for value in {*values, ""}:
        try:
            placeholders = calendar.placeholders(calendar.parse(value))
        except InvalidInput:
            continue
        for cut in (Cut(), *(Cut(("a",), (each,)) for each in values)):
            key = board.keys.window(0, label, placeholders, cut)
            yield from (f"{key}{part}" for part in PARTS)


def names_in_calls(tree: ast.AST) -> Iterator[str]:
    """Literal keys in calls of commands: `command("GET", "laurels:x")`."""
    for node in ast.walk(tree):
        words: list[ast.expr] = []
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "command"
        ):
            words = node.args
        elif isinstance(node, ast.Tuple):
            words = node.elts
        if len(words) < 2 or not (isinstance(words[0], ast.Constant) and str(words[0].value).isupper()):
            continue
        key = words[1].values[0] if isinstance(words[1], ast.JoinedStr) else words[1]
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            yield key.value


def test_no_command_is_given_a_key_that_is_written_out():
    """Keys must be made of the names in `valkey/names.py`, so that the list there is complete."""
    found = [
        (path.name, name)
        for path in sorted(SOURCE.rglob("*.py"))
        for name in names_in_calls(ast.parse(path.read_text()))
        if ":" in name and not name.startswith("{")
    ]
    assert found == []
