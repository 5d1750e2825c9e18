"""Decompresses bodies by `Content-Encoding` as they arrive, in pieces of bounded size.

The expansion is bounded too, so a decompression bomb is refused early.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

import zstandard

from laurels.http.problems import Malformed, TooLarge, UnsupportedEncoding

if TYPE_CHECKING:
    from collections.abc import Iterator

PIECE_BYTES: Final = 2**16
# Lines of scores compress 5 to 40 times; only a bomb exceeds this.
MOST_EXPANSION: Final = 200
FREE_BYTES: Final = 2**20
# RFC 8878 asks every decoder to support this; `zstd -19` needs no more.
WINDOW_BYTES: Final = 2**23
# Members of gzip or frames of zstd: parallel compressors make one for each block of 64 KiB or more.
MOST_PARTS: Final = 10_000


class Decoder(Protocol):
    """Decompresses pieces as they arrive."""

    @property
    def is_complete(self) -> bool:
        """Whether the body may end here."""
        ...

    def decode(self, piece: bytes) -> Iterator[bytes]: ...


class _ZlibDecompressor(Protocol):
    """The type of `zlib.decompressobj()`."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    @property
    def unconsumed_tail(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class _Parts(ABC):
    """A body of consecutive parts: members of gzip, or frames of zstd.

    It is decoded in slices, because the rest of a slice is copied where a part ends. Without slices, the work
    would grow with the square of the body's length.
    """

    slice_bytes: ClassVar[int]

    def __init__(self) -> None:
        self._parts = 0

    def decode(self, piece: bytes) -> Iterator[bytes]:
        gathered: list[bytes] = []
        size = 0
        for start in range(0, len(piece), self.slice_bytes):
            for decoded in self._unpacked(piece[start : start + self.slice_bytes]):
                gathered.append(decoded)
                size += len(decoded)
                if size >= PIECE_BYTES:
                    yield b"".join(gathered)
                    gathered.clear()
                    size = 0
        if size:
            yield b"".join(gathered)

    def _count_part(self) -> None:
        self._parts += 1
        if self._parts > MOST_PARTS:
            raise Malformed(
                f"the compressed body has more than {MOST_PARTS} members or frames: send fewer, larger"
            )

    @abstractmethod
    def _unpacked(self, rest: bytes) -> Iterator[bytes]: ...


class Gzip(_Parts):
    slice_bytes = 2**10

    def __init__(self) -> None:
        super().__init__()
        self._member = self._begun()

    @property
    def is_complete(self) -> bool:
        return self._member.eof

    def _begun(self) -> _ZlibDecompressor:
        self._count_part()
        return zlib.decompressobj(zlib.MAX_WBITS | 16)

    def _unpacked(self, rest: bytes) -> Iterator[bytes]:
        is_full = False
        while rest or is_full:
            if self._member.eof:
                self._member = self._begun()
            try:
                decoded = self._member.decompress(rest, PIECE_BYTES)
            except zlib.error as error:
                raise Malformed("the body is not gzip, or damaged") from error
            rest = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
            is_full = len(decoded) == PIECE_BYTES and not self._member.eof
            yield decoded


class Zstandard(_Parts):
    # A zstd block has at least 4 bytes and at most 128 KiB of output, so a slice expands to at most 4 MiB.
    slice_bytes = 128

    def __init__(self) -> None:
        super().__init__()
        self._decompressor = zstandard.ZstdDecompressor(max_window_size=WINDOW_BYTES)
        self._frame = self._begun()

    @property
    def is_complete(self) -> bool:
        return self._frame.eof

    def _begun(self) -> zstandard.ZstdDecompressionObj:
        self._count_part()
        return self._decompressor.decompressobj()

    def _unpacked(self, rest: bytes) -> Iterator[bytes]:
        while rest:
            if self._frame.eof:
                self._frame = self._begun()
            try:
                decoded = self._frame.decompress(rest)
            except zstandard.ZstdError as error:
                raise Malformed("the body is not zstd, damaged, or needs a window beyond 8 MiB") from error
            rest = self._frame.unused_data if self._frame.eof else b""
            yield decoded


CODINGS: Final[dict[str, type[Decoder]]] = {"gzip": Gzip, "x-gzip": Gzip, "zstd": Zstandard}
# As answers list them; x-gzip is an old name of gzip.
ACCEPTED: Final = ("gzip", "zstd", "identity")


def decoder_for(content_encoding: str) -> Decoder | None:
    """A decoder for this encoding; None if the body is not compressed."""
    named = content_encoding.strip().lower()
    if named in ("", "identity"):
        return None
    if named not in CODINGS:
        raise UnsupportedEncoding(f"send Content-Encoding: {' or '.join(ACCEPTED)}, not {named}", ACCEPTED)
    return CODINGS[named]()


class Expansion:
    """Checks how many bytes arrived, and how many they decompressed to."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.arrived = 0
        self._unpacked = 0

    def add(self, unpacked: int) -> None:
        self._unpacked += unpacked
        if self._unpacked > self._limit:
            raise TooLarge(f"the decompressed body has more than {self._limit} bytes")
        if self._unpacked > FREE_BYTES + MOST_EXPANSION * self.arrived:
            raise TooLarge(f"the decompressed body is more than {MOST_EXPANSION} times as large as sent")
