"""Reads the body of a request within its limit, decompresses and decodes it.

Raw pieces are the bytes as sent, which signatures and fingerprints cover. JSON is in the decompressed bytes.
"""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import aclosing
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec
from starlette.requests import ClientDisconnect

from laurels.deadline import Deadline
from laurels.errors import InvalidInput
from laurels.http.content_encoding import Expansion, decoder_for
from laurels.http.problems import Malformed, Stalled, TooLarge, UnsupportedMediaType
from laurels.wording import of_msgspec

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from starlette.requests import Request

    from laurels.http.content_encoding import Decoder

BODY_BYTES: Final = 2**20
BATCH_BYTES: Final = 64 * 2**20
LINE_BYTES: Final = 2**20
# The longest wait for the next piece of a body.
STALL_SECONDS: Final = 30.0

JSON: Final = "application/json"
LINES: Final = "application/x-ndjson"

Decoded = TypeVar("Decoded")

_SPACE: Final = b" \t\n\r"
_NO_SPACE: Final = re.compile(r"[^ \t\n\r]")
_anything = msgspec.json.Decoder(msgspec.Raw)
_array = msgspec.json.Decoder(list[msgspec.Raw])
# Finds the end of a value in valid JSON, without parsing its numbers.
_scan: Final = json.JSONDecoder(parse_int=len, parse_float=len, strict=False).raw_decode


def media_type(request: Request, *accepted: str) -> str:
    """The body's type, one of the accepted types; the first if the request names none."""
    sent = request.headers.get("content-type", "")
    if sent in accepted:
        return sent
    given, _, parameters = sent.partition(";")
    given = given.strip().lower()
    if given and given not in accepted:
        raise UnsupportedMediaType(f"send Content-Type: {' or '.join(accepted)}, not {given}")
    charset = parameters.replace(" ", "").replace('"', "").lower().partition("charset=")[2].partition(";")[0]
    if charset not in ("", "utf-8", "utf8", "us-ascii"):
        raise UnsupportedMediaType(f"send the body in UTF-8, not {charset}")
    return given or accepted[0]


async def read_json(
    request: Request, decoder: msgspec.json.Decoder[Decoded], limit: int = BODY_BYTES
) -> Decoded:
    media_type(request, JSON)
    return decode(await read(request, limit), decoder)


def decode(encoded: bytes | msgspec.Raw, decoder: msgspec.json.Decoder[Decoded]) -> Decoded:
    try:
        return decoder.decode(encoded)
    except msgspec.ValidationError as error:
        found = of_msgspec(error, decoder.type)
        raise InvalidInput.at(found.field, found.detail) from error
    except msgspec.DecodeError as error:
        raise Malformed(str(error) if encoded else "the body is empty: send JSON") from error
    except UnicodeDecodeError as error:
        raise Malformed("not UTF-8") from error
    except RecursionError as error:
        raise Malformed("nested too deeply") from error


def elements(encoded: bytes) -> Iterator[bytes]:
    """The elements of an array as sent, one at a time: a list of all would take 30 times the memory."""
    if not encoded.lstrip(_SPACE).startswith(b"["):
        decode(encoded, _array)
    decode(encoded, _anything)
    text = encoded.decode("latin-1")  # a character for each byte
    end = text.index("[")
    while (start := _beginning(text, end + 1)) < len(text) and text[start] != "]":
        try:
            _, end = _scan(text, start)
        except RecursionError as error:
            raise Malformed("nested too deeply") from error
        yield encoded[start:end]
        end = _beginning(text, end)
        if text[end] == "]":
            return


def _beginning(text: str, start: int) -> int:
    """The index of the next character that is not white space."""
    found = _NO_SPACE.search(text, start)
    return found.start() if found else len(text)


async def read(request: Request, limit: int = BODY_BYTES) -> bytes:
    """The whole body, decompressed."""
    decoder = decoder_of(request)
    return decompressed(decoder, await read_raw(request, limit), limit)


async def read_raw(request: Request, limit: int = BODY_BYTES) -> bytes:
    """The whole body as sent."""
    _check_declared(request, limit)
    piece, more = await _next_piece(request)
    total = len(piece)
    if not more:
        _check_total(total, limit)
        return piece
    pieces = [piece]
    while more and total <= limit:
        piece, more = await _next_piece(request)
        pieces.append(piece)
        total += len(piece)
    _check_total(total, limit)
    return b"".join(pieces)


def decoder_of(request: Request) -> Decoder | None:
    """The decoder for the body; None if it is not compressed."""
    named = request.headers.get("content-encoding")
    return decoder_for(named) if named else None


def decompressed(decoder: Decoder | None, raw: bytes, limit: int = BODY_BYTES) -> bytes:
    """A whole body, decompressed."""
    if decoder is None:
        return raw
    unpacked = b"".join(_unpacked(decoder, raw, Expansion(limit)))
    _check_complete(decoder)
    return unpacked


async def decoded_pieces(
    decoder: Decoder | None, pieces: AsyncGenerator[bytes], limit: int
) -> AsyncGenerator[bytes]:
    """The raw pieces, decompressed, in pieces of bounded size."""
    expansion = Expansion(limit)
    async with aclosing(pieces):
        async for piece in pieces:
            for unpacked in (piece,) if decoder is None else _unpacked(decoder, piece, expansion):
                yield unpacked
                # Other tasks would wait while a body that has arrived, or expands a lot, is decoded.
                await asyncio.sleep(0)
    if decoder is not None:
        _check_complete(decoder)


async def read_lines(pieces: AsyncGenerator[bytes]) -> AsyncGenerator[list[bytes | None]]:
    """The lines that each piece completes; None for a line that is too long."""
    line = bytearray()
    async with aclosing(pieces):
        async for piece in pieces:
            first, *others = piece.split(b"\n")
            # One byte beyond the limit shows that a line is too long; the rest is not kept.
            line += first[: LINE_BYTES + 1 - len(line)]
            if not others:
                continue
            rest = others.pop()
            yield [_line(line), *(each if len(each) <= LINE_BYTES else None for each in others)]
            line = bytearray(rest[: LINE_BYTES + 1])
    if line:
        yield [_line(line)]


def _line(line: bytearray) -> bytes | None:
    return bytes(line) if len(line) <= LINE_BYTES else None


async def raw_pieces(request: Request, limit: int) -> AsyncGenerator[bytes]:
    """The body as it arrives; raises if it is larger than the limit or stalls."""
    _check_declared(request, limit)
    total = 0
    more = True
    while more:
        piece, more = await _next_piece(request)
        total += len(piece)
        _check_total(total, limit)
        if piece:
            yield piece


async def _next_piece(request: Request) -> tuple[bytes, bool]:
    """The next piece, and whether more follow."""
    try:
        with Deadline(STALL_SECONDS):
            message = await request.receive()
    except TimeoutError as error:
        raise Stalled(f"no more of the body arrived within {STALL_SECONDS:g} seconds") from error
    if message["type"] == "http.disconnect":
        raise ClientDisconnect
    return message.get("body", b""), message.get("more_body", False)


def _check_declared(request: Request, limit: int) -> None:
    declared = request.headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and (len(declared) > 19 or int(declared) > limit):
        raise TooLarge(f"the body has {declared} bytes; at most {limit} are read")


def _check_total(total: int, limit: int) -> None:
    if total > limit:
        raise TooLarge(f"the body has more than {limit} bytes")


def _unpacked(decoder: Decoder, piece: bytes, expansion: Expansion) -> Iterator[bytes]:
    expansion.arrived += len(piece)
    for unpacked in decoder.decode(piece):
        expansion.add(len(unpacked))
        yield unpacked


def _check_complete(decoder: Decoder) -> None:
    if not decoder.is_complete:
        raise Malformed("the compressed body ends too early")
