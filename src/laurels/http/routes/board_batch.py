"""Defines many boards of a project."""

import asyncio
from collections.abc import Iterator
from functools import partial
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from laurels.boards.consent import parse_consent
from laurels.boards.defined import Defined, refused
from laurels.boards.definition import BoardDefinition, parse_definition
from laurels.errors import InvalidInput, LaurelsError
from laurels.http import body
from laurels.http.authentication import Call
from laurels.http.operation import PROJECT, Body, Routes
from laurels.http.problems import Malformed
from laurels.http.routes.boards import check_reach

# Each is answered by itself, and takes up to some milliseconds.
MOST_BOARDS: Final = 10_000
MOST_BYTES: Final = 16 * 2**20
# How many definitions are read before other tasks may run.
PAUSE_BOARDS: Final = 50

routes = Routes("boards")

_LINES: Final[list[dict[str, Any]]] = [
    {"board": "europe", "definition": {"windows": [{"period": "daily", "keep": 30}]}},
    {"board": "asia", "definition": {"windows": [{"period": "weekly"}]}, "allow_drop": "daily"},
    {"board": "no such name", "definition": {}},
]
_WHY: Final = "board: 'no such name' is not an id of 1 to 64 of A-Z a-z 0-9 - _ ."


class DefinitionLine(Struct, frozen=True, forbid_unknown_fields=True):
    """A board to define. `allow_drop` is that of `PUT`."""

    board: str
    definition: BoardDefinition
    allow_drop: Annotated[str, Meta(examples=["weekly,monthly"])] | None = None


class Definitions(Struct, frozen=True):
    """What became of each board, in the order of the request."""

    boards: list[Defined]


class _SentDefinition(Struct, frozen=True, forbid_unknown_fields=True):
    board: str
    definition: msgspec.Raw
    allow_drop: str | None = None


_line = msgspec.json.Decoder(_SentDefinition)
_anything = msgspec.json.Decoder()


@routes.post(
    f"{PROJECT}/boards/batch",
    scope="admin",
    body=Body(
        _LINES,
        {body.LINES: "\n".join(msgspec.json.encode(each).decode() for each in _LINES)},
        list[DefinitionLine],
    ),
    most_bytes=MOST_BYTES,
    example={
        "boards": [
            {"board": "europe", "outcome": "created", "version": 17},
            {"board": "asia", "outcome": "changed", "version": 19},
            {
                "board": "no such name",
                "outcome": "refused",
                "problem": {
                    "type": "/problems/invalid-input",
                    "title": "The input is not valid",
                    "status": 422,
                    "detail": _WHY,
                    "errors": [{"field": "board", "detail": _WHY.removeprefix("board: ")}],
                },
            },
        ]
    },
)
async def define_boards(call: Call) -> Definitions:
    """Define many boards.

    Send a JSON array, or lines of JSON: at most 10,000 boards. Each is created, changed or left unchanged as
    by `PUT`, or refused with its problem, which does not affect the others. A board that is named twice gets
    both definitions, in this order. The request can be repeated: boards that are defined already are
    `unchanged`.
    """
    is_lines = body.media_type(call.request, body.JSON, body.LINES) == body.LINES
    sent = await body.read(call.request, MOST_BYTES)
    reading = _SentBoards(call)
    for number, each in enumerate(_lines_of(sent) if is_lines else body.elements(sent)):
        if number >= MOST_BOARDS:
            raise InvalidInput(
                f"a request defines at most {MOST_BOARDS:,} boards; send the others in another"
            )
        if number % PAUSE_BOARDS == 0:
            await asyncio.sleep(0)
        await reading.add(each)
    return Definitions(await reading.define())


def _lines_of(sent: bytes) -> Iterator[bytes]:
    return (line for line in sent.split(b"\n") if line and not line.isspace())


class _SentBoards:
    """Reads what is sent, before anything is defined."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._results: list[Defined | None] = []
        """None for a board that is still to be defined."""
        self._groups: list[dict[str, tuple[int, _SentDefinition]]] = [{}]
        """By name, with its place in the results. Each group has a board once."""
        self._known: dict[bytes, BoardDefinition | InvalidInput] = {}

    async def add(self, sent: bytes) -> None:
        name = ""
        try:
            line = body.decode(sent, _line)
            name = line.board
            definition = self._definition(bytes(line.definition))
            if definition.feeds or definition.keys is not None:
                await check_reach(self._call, name, definition)
            if line.allow_drop is not None:
                parse_consent(line.allow_drop)
        except (InvalidInput, Malformed, LaurelsError) as error:
            self._results.append(refused(name, error))
            return
        if name in self._groups[-1]:
            self._groups.append({})
        self._groups[-1][name] = len(self._results), line
        self._results.append(None)

    def _definition(self, sent: bytes) -> BoardDefinition:
        """Boards of one request mostly have one of few definitions."""
        known = self._known.get(sent)
        if known is None:
            try:
                known = parse_definition(body.decode(sent, _anything))
            except InvalidInput as error:
                known = error
            self._known[sent] = known
        if isinstance(known, InvalidInput):
            raise InvalidInput(known.detail, *known.fields)
        return known

    async def define(self) -> list[Defined]:
        define = partial(self._call.laurels.define_many, self._call.project)
        for group in self._groups:
            done = await define(
                {name: self._definition(bytes(line.definition)) for name, (_, line) in group.items()},
                allow_drop={
                    name: line.allow_drop for name, (_, line) in group.items() if line.allow_drop is not None
                },
            )
            for (place, _), each in zip(group.values(), done, strict=True):
                self._results[place] = each
        return [each for each in self._results if each is not None]
