"""What a request carries: read within its limit, and decoded."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from laurels.api.problems import Malformed, TooLarge, UnsupportedMediaType, in_our_words
from laurels.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.requests import Request

BODY_BYTES: Final = 2**20
BATCH_BYTES: Final = 64 * 2**20
LINE_BYTES: Final = 2**20

JSON: Final = "application/json"
LINES: Final = "application/x-ndjson"

Decoded = TypeVar("Decoded")


def media_type(request: Request, *accepted: str) -> str:
    """Which of the accepted types the body has; the first when it does not say."""
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given and given not in accepted:
        raise UnsupportedMediaType(f"send Content-Type: {' or '.join(accepted)}, not {given}")
    return given or accepted[0]


async def read_json(request: Request, decoder: msgspec.json.Decoder[Decoded]) -> Decoded:
    media_type(request, JSON)
    return decode(await read(request), decoder)


def decode(encoded: bytes | msgspec.Raw, decoder: msgspec.json.Decoder[Decoded]) -> Decoded:
    try:
        return decoder.decode(encoded)
    except msgspec.ValidationError as error:
        found = in_our_words(error)
        raise InvalidInput.at(found.field, found.detail) from error
    except msgspec.DecodeError as error:
        raise Malformed(str(error) if encoded else "empty, where JSON should be") from error
    except UnicodeDecodeError as error:
        raise Malformed("not UTF-8") from error
    except RecursionError as error:
        raise Malformed("nested too deeply") from error


async def read(request: Request, limit: int = BODY_BYTES) -> bytes:
    async with aclosing(_pieces(request, limit)) as pieces:
        return b"".join([piece async for piece in pieces])


async def read_lines(request: Request, limit: int = BATCH_BYTES) -> AsyncGenerator[bytes | None]:
    """One line after the other, as they arrive; None for one that is longer than a line may be."""
    line = bytearray()
    async with aclosing(_pieces(request, limit)) as pieces:
        async for piece in pieces:
            *ends, rest = piece.split(b"\n")
            for end in ends:
                line += end
                yield bytes(line) if len(line) <= LINE_BYTES else None
                line.clear()
            # Of a line that is too long no more is kept than tells that it is.
            line += rest[: LINE_BYTES + 1 - len(line)] if len(line) <= LINE_BYTES else b""
    if line:
        yield bytes(line) if len(line) <= LINE_BYTES else None


async def _pieces(request: Request, limit: int) -> AsyncGenerator[bytes]:
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > limit:
        raise TooLarge(f"the body has {declared} bytes; at most {limit} are read")
    total = 0
    async with aclosing(request.stream()) as stream:
        async for piece in stream:
            total += len(piece)
            if total > limit:
                raise TooLarge(f"the body has more than {limit} bytes")
            yield piece
