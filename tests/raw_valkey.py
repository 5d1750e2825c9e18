"""What Valkey itself holds, read without any code of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import redis

if TYPE_CHECKING:
    from collections.abc import Iterator

Dump = dict[bytes, Any]


class RawValkey:
    """One node, read by a plain client."""

    def __init__(self, url: str) -> None:
        untyped: Any = redis.Redis  # redis-py types its client only in part
        self.client: Any = untyped.from_url(url)

    def keys(self, mark: str) -> list[bytes]:
        """Every key that has this in its name, but for the numbers that dropped boards leave for a while."""
        return sorted(
            key
            for key in self.client.scan_iter(count=1000)
            if mark.encode() in key and not (key.endswith(b":board") and self.client.ttl(key) > 0)
        )

    def dump(self, mark: str) -> Dump:
        """All that those keys hold."""
        return {key: self._value(key) for key in self.keys(mark)}

    def live(self, mark: str) -> Dump:
        """The same without what is kept of the way in: journal, ids and calls."""
        passing = (b":journal", b":ids:", b":calls:", b":fed")
        return {
            key: held for key, held in self.dump(mark).items() if not any(part in key for part in passing)
        }

    def age(self, board: str, name: str, seconds: int) -> None:
        """The generation of `ids`, `calls` or `once` that is written to becomes this much older."""
        key = f"lb:{{{board}}}:board"
        number, began = self.client.hget(key, name).split()
        self.client.hset(key, name, f"{int(number)} {int(began) - seconds}")

    def journal(self, board: str) -> list[dict[bytes, bytes]]:
        """What each call appended."""
        return [fields for _, fields in self.client.xrange(f"lb:{{{board}}}:journal")]

    def holding(self, mark: str, text: bytes) -> list[bytes]:
        """The keys in whose name or contents these bytes occur."""
        return [key for key, held in self.dump(mark).items() if text in key or _occurs(text, held)]

    def calls(self, command: str) -> int:
        """How often a command was sent, or called by a function, since the server began."""
        stats = self.client.info("commandstats").get(f"cmdstat_{command}")
        return stats["calls"] if stats else 0

    def close(self) -> None:
        self.client.close()

    def _value(self, key: bytes) -> Any:  # noqa: ANN401  # whatever the key holds
        match self.client.type(key):
            case b"zset":
                return self.client.zrange(key, 0, -1, withscores=True)
            case b"hash":
                return self.client.hgetall(key)
            case b"set":
                return self.client.smembers(key)
            case b"stream":
                return self.client.xrange(key)
            case _:
                return self.client.get(key)


def _occurs(text: bytes, held: object) -> bool:
    return any(text in part for part in _parts(held))


def _parts(held: object) -> Iterator[bytes]:
    match held:
        case bytes():
            yield held
        case dict():
            for pair in held.items():  # pyright: ignore[reportUnknownVariableType]
                yield from _parts(pair)  # pyright: ignore[reportUnknownArgumentType]
        case list() | tuple() | set() | frozenset():
            for each in held:  # pyright: ignore[reportUnknownVariableType]
                yield from _parts(each)  # pyright: ignore[reportUnknownArgumentType]
        case _:
            return
