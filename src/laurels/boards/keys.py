"""The names of all keys that a board has in Valkey, and their hash tag.

    lb:{project/board}:daily:2025-10-24              a window: entries
    lb:{project/board}:daily:2025-10-24:country=BR   the same, of one group
    …|prefixes |metadata |scores |counts            further keys of a window
    lb:{project/board}:board :journal :dead :windows   of the board
    lb:{project/board}:ratings                       players' ratings, where scores come from matches
    lb:{project/board}:index                         how far an index declared on a model is applied
    lb:{project/board}:ids:0 :calls:0                recent submissions and calls, in three generations
    lb:{project/board}:once:0                        requests with an idempotency key, in three generations
    lb:{project/board}:fed                           calls of feeders that are not archived yet
    lb:{project/board}:cuts:daily|2025-10-24         the groups that a window has
    lb:{project/board}:built:rolling_7d|2025-10-24:UTC   a rolling window that is complete, in a zone

A shadow board has the same keys behind a prefix without braces, so they lie in the same slot.

A board with shards has each member in one of `{project/board/0}`, `{project/board/1}`, … Templates replace
the names of windows. On a cluster their common prefix is the hash tag, and the board's other keys are
`lb:{prefix}:project/board:…`, because two boards may have the same prefix.
"""

from __future__ import annotations

import os.path
import re
import zlib
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote_to_bytes

from laurels.boards.names import NAME_PATTERN
from laurels.boards.ordering import Ordering
from laurels.boards.patterns import Pattern
from laurels.boards.templates import PLACEHOLDER, group_parts, key_parts
from laurels.errors import InvalidInput
from laurels.valkey.names import BOARD, BOARD_NAMES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from laurels.boards.definition import BoardDefinition

GENERATIONS: Final = 3

_NAME = re.compile(NAME_PATTERN)
# Characters with a meaning in keys or in `group=`, and control characters. Others are not escaped.
_ESCAPES = {code: f"%{code:02X}" for code in (*range(32), 127, *map(ord, "%:=,{}|"))}


class BoardRef(NamedTuple):
    """The name of a board: `project/board`."""

    project: str
    board: str

    def __str__(self) -> str:
        return f"{self.project}/{self.board}"

    @classmethod
    @lru_cache(maxsize=4096)
    def parse(cls, text: str) -> BoardRef:
        project, slash, board = text.partition("/")
        if not (project and slash and board) or "/" in board:
            raise InvalidInput.at("board", f"write it as PROJECT/BOARD, not {text!r}")
        for name in (project, board):
            if not _NAME.fullmatch(name):
                raise InvalidInput.at("board", f"{name!r} is not an id of 1 to 64 of A-Z a-z 0-9 - _ .")
        return cls(project, board)


@dataclass(frozen=True, slots=True)
class Cut:
    """The whole board, or one group of it: `region=asia,city=tokyo`."""

    dimensions: tuple[str, ...] = ()
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.dimensions:
            return ""
        return ",".join(
            f"{name}={value.translate(_ESCAPES)}"
            for name, value in zip(self.dimensions, self.values, strict=True)
        )

    def __bool__(self) -> bool:
        return bool(self.dimensions)

    @property
    def named(self) -> dict[str, str]:
        """Each dimension with its value; nothing for the whole board."""
        return dict(zip(self.dimensions, self.values, strict=True))

    def value(self, dimension: str) -> str | None:
        """The value of a dimension; None if the cut does not have it."""
        return self.named.get(dimension)


WHOLE = Cut()


def group_text(group: str | Mapping[str, str] | None) -> str | None:
    """A group as `group=` takes it: `country=BR`. A caller may give it so, or as a mapping."""
    if group is None or isinstance(group, str):
        return group
    for name, value in group.items():
        if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers exist
            raise InvalidInput.at("group", f"the value of {name!r} must be a string")
    return str(Cut(tuple(group), tuple(group.values())))


def group_dict(group: str | Mapping[str, str] | None, field: str = "groups") -> dict[str, str] | None:
    """The value of each dimension, from a mapping or a text: `country=BR`. In a text, escapes such as %2C
    stand for characters that have a meaning.
    """
    if group is None:
        return None
    if not isinstance(group, str):
        return dict(group)
    named: dict[str, str] = {}
    for part in group.split(",") if group else ():
        name, equals, value = part.partition("=")
        if not equals or name in named:
            raise InvalidInput.at(field, f"write it like country=BR or region=asia,city=tokyo, not {group!r}")
        try:
            named[name] = unquote_to_bytes(value).decode()
        except UnicodeError as error:
            raise InvalidInput.at(field, f"{value!r} is not UTF-8") from error
    return named


def parse_cut(group: str | Mapping[str, str] | None, definition: BoardDefinition) -> Cut:
    """The cut of a board that a group means."""
    asked = group_dict(group_text(group), "group")
    if not asked:
        return WHOLE
    for dimensions in definition.groups:
        if set(dimensions) == asked.keys():
            return Cut(dimensions, tuple(asked[name] for name in dimensions))
    known = "; ".join(",".join(group) for group in definition.groups) or "none"
    raise InvalidInput.at("group", f"the board is not ranked by {','.join(asked)}; its groups: {known}")


def board_of(key: str) -> BoardRef:
    """The board that has one of `BOARD_NAMES` under this key."""
    tag, _, rest = key.removeprefix(BOARD).partition("}")
    within = rest.strip(":").rpartition(":")[0]
    project, board = (within or tag).split("/")[:2]
    return BoardRef(project, board)


class KeySpace:
    """The keys of one board. `cluster`: whether keys of templates get a hash tag."""

    __slots__ = ("_dense", "_own", "_prefix", "_prefixed", "_tag_length", "shards", "templates")

    def __init__(
        self, ref: BoardRef, definition: BoardDefinition, *, cluster: bool, prefix: str = ""
    ) -> None:
        self.shards = definition.shards
        self._prefix = prefix
        self._prefixed = Ordering.of(definition).prefixed
        self._dense = definition.dense
        self.templates = {
            target: template.replace("{project}", ref.project).replace("{board}", ref.board)
            for target, template in (definition.keys or {}).items()
        }
        self._tag_length = 0
        tag, within = str(ref), ""
        if self.templates and cluster:
            tag = self._common_prefix()
            self._tag_length, within = len(tag), f":{ref}"
            if len(definition.windows) > sum(":" not in target for target in self.templates):
                raise InvalidInput.at("keys", "on a cluster, either every window has a template or none has")
        tags = [tag] if self.shards == 1 else [f"{tag}/{shard}" for shard in range(self.shards)]
        self._own = [f"{prefix}{BOARD}{each}}}{within}" for each in tags]

    def _common_prefix(self) -> str:
        constants = [PLACEHOLDER.split(template, maxsplit=1)[0] for template in self.templates.values()]
        prefix = os.path.commonprefix(constants).rstrip(":-_./|")  # noqa: RUF071  # characters, not paths
        if not prefix:
            raise InvalidInput.at(
                "keys", "on a cluster, the templates need a common beginning: it is the hash tag"
            )
        return prefix

    def shard_of(self, member: bytes) -> int:
        return zlib.crc32(member) % self.shards if self.shards > 1 else 0

    def of_board(self, shard: int, name: str) -> str:
        """One of `BOARD_NAMES`, with its detail: `journal`, `ids:20385`."""
        if name.partition(":")[0] not in BOARD_NAMES:
            raise ValueError(f"{name!r} is not in BOARD_NAMES, so a window could have its key")
        return f"{self._own[shard]}:{name}"

    def generations(self, shard: int, name: str) -> tuple[str, ...]:
        """The generations of `ids`, `calls` or `once` (see lua/generations.lua)."""
        return tuple(self.of_board(shard, f"{name}:{number}") for number in range(GENERATIONS))

    def buckets(self, shard: int, name: str, seconds: float) -> tuple[str, ...]:
        """The three keys of earlier versions, before generations: one a day, or one every ten minutes."""
        present = int(seconds) // (600 if name == "calls" else 86400)
        return tuple(self.of_board(shard, f"{name}:{present + ago}") for ago in (-1, 0, 1))

    def window(self, shard: int, label: str, placeholders: Mapping[str, str], cut: Cut = WHOLE) -> str:
        """The sorted set of one window, whole or of a group."""
        target = f"{label}:{','.join(cut.dimensions)}" if cut else label
        template = self.templates.get(target)
        suffix = ""
        if template is None:
            template, suffix = self.templates.get(label), f":{cut}" if cut else ""
        if template is None:
            slot = placeholders.get("slot", "")
            return f"{self._own[shard]}:{label}{':' if slot else ''}{slot}{suffix}"
        values = {**placeholders}
        for name, value in zip(cut.dimensions, cut.values, strict=True):
            values[f"group.{name}"] = value.translate(_ESCAPES)
        key = PLACEHOLDER.sub(lambda found: values[found[1]], template) + suffix
        length = self._tag_length
        return f"{self._prefix}{{{key[:length]}}}{key[length:]}" if length else f"{self._prefix}{key}"

    def bare(self, key: str) -> str | None:
        """The key without the hash tag that templates get on a cluster; None if it has another tag."""
        length = self._tag_length
        if not length:
            return key
        is_tagged = key[:1] == "{" and key[length + 1 : length + 2] == "}"
        return key[1 : length + 1] + key[length + 2 :] if is_tagged else None

    def patterns(self, definition: BoardDefinition) -> dict[str, tuple[Pattern, ...]]:
        """The keys that each template can make for windows and groups, without the suffixes `|…`."""
        made: dict[str, tuple[Pattern, ...]] = {}
        for target, template in self.templates.items():
            label, _, cut = target.partition(":")
            window = definition.window(label)
            if window is None:
                continue
            length = self._tag_length
            tag = f"{{{template[:length]}}}" if length else ""
            parts = (tag, *key_parts(template[length:], window.period))
            plain = (
                ()
                if cut
                else (g for g in definition.groups if f"{label}:{','.join(g)}" not in self.templates)
            )
            suffixes = ((), *(group_parts(group) for group in plain))
            made[target] = tuple(Pattern.of(*parts, *suffix) for suffix in suffixes)
        return made

    def parts(self, window: str, *, metadata: bool) -> tuple[str, ...]:
        """All keys of a window, in the order that the functions expect."""
        parts = [window]
        if self._prefixed:
            parts.append(f"{window}|prefixes")
        if metadata:
            parts.append(f"{window}|metadata")
        if self._dense:
            parts += [f"{window}|scores", f"{window}|counts"]
        return tuple(parts)
