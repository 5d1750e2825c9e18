"""Content-Encoding: a body that was compressed, decompressed as it arrives, a bounded piece at a time.

What a small body may become is bounded too: a bomb is refused long before it is unpacked.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final, Protocol

import zstandard

from laurels.api.problems import Malformed, TooLarge, UnsupportedEncoding

if TYPE_CHECKING:
    from collections.abc import Iterator

PIECE_BYTES: Final = 2**16
# Scores as lines shrink 5 to 40 times; nothing but a bomb goes on beyond this.
MOST_EXPANSION: Final = 200
FREE_BYTES: Final = 2**20
# What RFC 8878 asks every reader to have room for; `zstd -19` needs no more.
WINDOW_BYTES: Final = 2**23
# A block of zstd is 4 bytes or more, and at most 128 KiB of output: so a slice becomes at most 4 MiB.
SLICE_BYTES: Final = 128


class Decoder(Protocol):
    """Takes what arrives, and gives what it stands for."""

    @property
    def is_complete(self) -> bool:
        """Whether what arrived so far may be all."""
        ...

    def decode(self, piece: bytes) -> Iterator[bytes]: ...


class Gzip:
    """One or more members, one behind the other."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(zlib.MAX_WBITS | 16)

    @property
    def is_complete(self) -> bool:
        return self._stream.eof

    def decode(self, piece: bytes) -> Iterator[bytes]:
        full = False
        while piece or full:
            if self._stream.eof:
                self._stream = zlib.decompressobj(zlib.MAX_WBITS | 16)
            try:
                decoded = self._stream.decompress(piece, PIECE_BYTES)
            except zlib.error as error:
                raise Malformed("the body is not gzip, or damaged") from error
            piece = self._stream.unused_data if self._stream.eof else self._stream.unconsumed_tail
            full = len(decoded) == PIECE_BYTES and not self._stream.eof
            if decoded:
                yield decoded


class Zstandard:
    """One or more frames, one behind the other."""

    def __init__(self) -> None:
        self._decompressor = zstandard.ZstdDecompressor(max_window_size=WINDOW_BYTES)
        self._frame = self._decompressor.decompressobj()

    @property
    def is_complete(self) -> bool:
        return self._frame.eof

    def decode(self, piece: bytes) -> Iterator[bytes]:
        gathered: list[bytes] = []
        size = 0
        for start in range(0, len(piece), SLICE_BYTES):
            rest = piece[start : start + SLICE_BYTES]
            while rest:
                decoded, rest = self._decoded(rest)
                gathered.append(decoded)
                size += len(decoded)
            if size >= PIECE_BYTES:
                yield b"".join(gathered)
                gathered.clear()
                size = 0
        if size:
            yield b"".join(gathered)

    def _decoded(self, some: bytes) -> tuple[bytes, bytes]:
        if self._frame.eof:
            self._frame = self._decompressor.decompressobj()
        try:
            decoded = self._frame.decompress(some)
        except zstandard.ZstdError as error:
            raise Malformed("the body is not zstd, damaged, or needs a window beyond 8 MiB") from error
        return decoded, self._frame.unused_data if self._frame.eof else b""


CODINGS: Final[dict[str, type[Decoder]]] = {"gzip": Gzip, "x-gzip": Gzip, "zstd": Zstandard}
# As an answer names them; x-gzip is an old word for gzip.
ACCEPTED: Final = ("gzip", "zstd", "identity")


def decoder_for(content_encoding: str) -> Decoder | None:
    """What reads a body of this encoding; None for one that stands as it is."""
    named = content_encoding.strip().lower()
    if named in ("", "identity"):
        return None
    if named not in CODINGS:
        raise UnsupportedEncoding(f"send Content-Encoding: {' or '.join(ACCEPTED)}, not {named}", ACCEPTED)
    return CODINGS[named]()


class Expansion:
    """How much has arrived, and how much became of it."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.arrived = 0
        self._unpacked = 0

    def add(self, unpacked: int) -> None:
        self._unpacked += unpacked
        if self._unpacked > self._limit:
            raise TooLarge(f"the body has more than {self._limit} bytes once it is decompressed")
        if self._unpacked > FREE_BYTES + MOST_EXPANSION * self.arrived:
            raise TooLarge(
                f"the body becomes more than {MOST_EXPANSION} times as large once it is decompressed"
            )
