"""Requests that are wrong, one way each, by the thousand; and the field that each is wrong in.

Everything is written as bytes, since clients refuse to send most of it.
"""

# ruff: noqa: E501  # tables of values, each row of one kind

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import zstandard

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

JSON = b"application/json"
LINES = b"application/x-ndjson"
GOOD = {"member": "zed", "score": 1}


@dataclass(frozen=True)
class Case:
    method: str
    target: str
    """The path, as it is sent; what begins with `/` is under the board."""
    body: bytes | None = None
    headers: dict[str, bytes] = field(default_factory=dict[str, bytes])
    field: str | None = None
    """Which field the answer must name."""
    status: tuple[int, ...] = (400, 422)

    def __str__(self) -> str:
        shown = b"" if self.body is None else self.body[:200]
        return f"{self.method} {self.target[:200]} {self.headers} {shown!r}"


def dumped(value: object) -> bytes:
    return json.dumps(value).encode()


# JSON values by kind; a field is given those of the kinds that are not its own.
VALUES: dict[str, list[bytes]] = {
    "string": [b'"x"', b'"7"', b'"true"', b'"null"', b'"\\u0000"'],
    "whole": [b"0", b"-1", b"7", b"-0", b"9007199254740992"],
    "fraction": [b"1.5", b"-0.5", b"1e-7", b"5e-324"],
    "boolean": [b"true", b"false"],
    "array": [b"[]", b"[1]", b'["x"]', b"[[]]", b"[null]"],
    "object": [b"{}", b'{"a":1}', b'{"a":{}}'],
}
# What no JSON is.
NO_JSON = [
    b"NaN", b"Infinity", b"-Infinity", b"-", b"+1", b"01", b".5", b"1.", b"1e", b"0x10", b"1_000", b"True",
    b"None", b"undefined", b"'x'", b'"x', b'"\\x"', b'"\\u12"', b'"\t"', b'"\n"', b"{", b"[", b"]", b"}", b"", b"/**/1",
]  # fmt: skip
HUGE = [b"1e400", b"-1e400", b"1e309", b"-1e309", b"1e99999", b"9" * 400, b"-" + b"9" * 400]


def with_value(name: str, value: bytes, good: dict[str, Any] = GOOD) -> bytes:
    """The good object with one field's value replaced, or added."""
    rest = b"".join(
        b"," + dumped(other) + b":" + dumped(given) for other, given in good.items() if other != name
    )
    return b"{" + dumped(name) + b":" + value + rest + b"}"


def of_kinds(*own: str) -> Iterator[bytes]:
    for kind, values in VALUES.items():
        if kind not in own:
            yield from values


TEXTS = [b'""', dumped("x" * 257), dumped("\u00e9" * 129), dumped("\U0001f3c6" * 65)]
WORDS = [
    "",
    "x",
    "1.5",
    "1e5",
    "+5",
    " 5",
    "5 ",
    "--5",
    "0x5",
    "\u0663",
    "NaN",
    "inf",
    "9" * 20,
    "-" + "9" * 20,
]
BEYOND = [b"9223372036854775808", b"-9223372036854775809", b'"9223372036854775808"', b"1e18", b"1.0"]
INEXACT = [b"9007199254740993", b"-9007199254740993", b"9223372036854775807"]


def scores(*, int64: bool) -> list[bytes]:
    kinds = ("whole", "string") if int64 else ("whole", "fraction")
    return [*of_kinds(*kinds), b"null", *HUGE, *map(dumped, WORDS), *(BEYOND if int64 else INEXACT)]


def submissions(*, int64: bool) -> Iterator[tuple[str, bytes]]:
    """The field, and a submission that is wrong in it."""
    values = {
        "member": [*of_kinds("string"), b"null", *TEXTS],
        "score": scores(int64=int64),
        "at": [*of_kinds("string"), *map(dumped, MOMENTS)],
        "groups": [*of_kinds("object"), b'{"country":1}', b'{"country":null}', b'{"country":["BR"]}'],
        "id": [*of_kinds("string"), *TEXTS],
        "op": [*of_kinds("string"), *map(dumped, ("best", "BEST", "", "max", "sum ", "x" * 1000))],
        "metadata": [*of_kinds("object"), dumped({"x": "y" * 4096}), dumped({"x" * 5000: 1})],
        **{name: [b"1"] for name in UNKNOWN},
    }
    for name, wrong in values.items():
        yield from ((name, with_value(name, value)) for value in wrong)
    for name in ("city", "", "Country", "country ", "__proto__", "\u00e9"):
        yield f"groups.{name}", with_value("groups", dumped({name: "x"}))
    for value in ("", "x" * 257, "\u00e9" * 129):
        yield "groups.country", with_value("groups", dumped({"country": value}))
    yield from (("member", b'{"score":1}'), ("score", b'{"member":"zed"}'), ("member", b"{}"))
    yield from (("body", value) for value in [*of_kinds("object"), b"null"])


MOMENTS = [
    "", "yesterday", "2025", "2025-10", "2025-10-24", "2025-10-24T12:00:00", "2025-10-24 12:00", "12:00:00Z",
    "2025-13-01T00:00:00Z", "2025-00-01T00:00:00Z", "2025-02-30T00:00:00Z", "2025-10-32T00:00:00Z",
    "2025-10-24T24:00:01Z", "2025-10-24T25:00:00Z", "2025-10-24T12:60:00Z", "2025-10-24T12:00:61Z",
    "2025-10-24T12:00:00+25:00", "2025-10-24T12:00:00+", "2025-10-24T12:00:00ZZ", "0000-01-01T00:00:00Z",
    "10000-01-01T00:00:00Z", "-2025-10-24T12:00:00Z", "2025-10-24T12:00:00.Z", "1761307200", "2025-W43-5T12:00:00Z",
    "2025-10-24T12:00:00Europe/Berlin", "2025-10-24T12:01:01Z", "2099-01-01T00:00:00Z", "2025-10-22T12:00:00Z",
    "1970-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2025-10-24T12:00:00\x00Z",
]  # fmt: skip
UNKNOWN = [
    "points", "Member", "MEMBER", "Score", "scores", "user", "value", "time", "metadata ", " member", "member\x00",
    "__proto__", "constructor", "$ref", "", "rank", "applied", "period", "\u0101", "\U0001f3c6", "x" * 1000, "a.b", "a[0]",
]  # fmt: skip

VALID = dumped({**GOOD, "groups": {"country": "BR"}, "metadata": {"a": [1, 2]}})


def documents() -> Iterator[bytes]:
    """What is no JSON at all, whatever it was to be."""
    for length in range(len(VALID)):
        yield VALID[:length]
    for byte in range(0x80, 0x100):
        yield b'{"member":"' + bytes([byte]) + b'","score":1}'
    for bad in (b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\xf0\x9f\x8f"):
        yield b'{"member":"' + bad + b'","score":1}'
    for escape in (b"\\ud800", b"\\udc00", b"\\udc00\\ud800", b"\\ud800x", b"\\ud83c\\ud83c"):
        yield b'{"member":"' + escape + b'","score":1}'
    for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-8-sig", "utf-7"):
        yield VALID.decode().encode(encoding) if encoding != "utf-7" else b"+AHsAfQ-"
    for value in NO_JSON:
        yield b'{"member":"zed","score":' + value + b"}"
    for depth in (1100, 5000, 100_000):
        for opened in (b"[", b'{"a":'):
            yield opened * depth
            yield b'{"member":"zed","score":1,"metadata":{"a":' + opened * depth
    for trailing in (b"}", b",", b"]", b"x", b"\x00", b" {}", b"\n{}", b"//"):
        yield VALID + trailing
    yield from (
        b"   ",
        b"\n\n",
        b"\x00",
        b"<xml/>",
        b"member=zed&score=1",
        b"member,score\nzed,1",
        b"--x\r\n\r\n",
    )


def bodies() -> Iterator[Case]:
    # `at` is nothing to a board of int64 scores that it is not to one of doubles.
    for int64, path in ((False, "/scores"), (True, "@int64/scores")):
        for name, body in submissions(int64=int64):
            # A number that Python's parser refuses is no number to name a field of.
            lenient = None if any(huge in body for huge in HUGE) else name
            yield Case("POST", path, body, field=lenient)
    for document in documents():
        yield Case("POST", "/scores", document)
        yield Case("POST", "/entries/among", document)
        if document[:1] != b"[" or b"," in document:
            yield Case("POST", "/scores/batch", document)
    for value in [*of_kinds("array"), b"null", b'["x",1]', b"[null]", b"[[]]", dumped(["x"] * 1001)]:
        yield Case("POST", "/entries/among", b'{"members":' + value + b"}", field="members")
    for name in UNKNOWN:
        yield Case("POST", "/entries/among", b'{"members":["a"],' + dumped(name) + b":1}", field=name)
    yield Case("POST", "/entries/among", b"{}", field="members")


DEFINITION: dict[str, tuple[tuple[str, ...], list[object]]] = {
    # Of each field the kinds that it takes, and values of those kinds that it does not.
    "aggregate": (("string",), ["", "BEST", "max", "best "]),
    "allow_op": (("boolean",), []),
    "order": (("string",), ["", "DESC", "up"]),
    "score": (("string",), ["", "float", "int", "INT64"]),
    "ties": (("string",), ["", "latest", "none"]),
    "windows": (("array",), [[], [1], ["daily"], [None], [{}], [{"period": "dayly"}], [{"period": 1}],
        [{"period": "daily", "keep": 0}], [{"period": "daily", "keep": -1}], [{"period": "daily", "keep": "30"}],
        [{"period": "daily", "keep": "P-1D"}], [{"period": "daily", "keep": 1.5}], [{"period": "rolling"}],
        [{"period": "rolling", "days": 0}], [{"period": "rolling", "days": "7"}], [{"period": "every"}],
        [{"period": "every", "seconds": 0}], [{"period": "every", "seconds": -5}], [{"period": "daily", "x": 1}],
        [{"period": "daily"}, {"period": "daily"}], [{"period": "weekly", "sum_of": "daily"}],
        [{"period": "daily", "name": ""}], [{"period": "daily", "name": "a b"}], [{"period": "daily", "days": 7}]]),
    "timezone": (("string",), ["", "Mars/Olympus", "utc+1", "../etc/passwd", "Europe", "x" * 1000, "UTC\x00"]),
    "timezone_by": (("string",), ["", "campus"]),
    "groups": (("array",), [["country"], [[]], [[1]], [["a", "a"]], [["a"], ["a"]], [[""]], [["a=b"]], [None], [[None]]]),
    "dense": (("boolean",), []),
    "feeds": (("array",), [["x"], [""], ["a/b/c"], [1], [None], ["a b/c"], ["/"], ["nobody/nothing"]]),
    "lateness": (("string",), ["", "1 day", "P", "-P1D", "PT", "P1X", "1D"]),
    "archive": (("object",), [{"journal": 1}, {"snapshot": {}}, {"snapshot": [1]}, {"x": 1}, {"journal": None}]),
    "limits": (("object",), [{"min": "x"}, {"max": "x"}, {"min": 2, "max": 1}, {"x": 1}, {"max_change": -1},
        {"min": []}, {"max": True}]),
    "player_writes": (("boolean",), []),
    "shards": (("whole",), [0, -1, 100_000, 2**70]),
    "keys": (("object",), [{"daily": 1}, {"nothing": "x"}, {"all_time": ""}, {"all_time": "{nothing}"}, {"all_time": "{"}]),
    "rating": (("object",), [{}, {"system": "chess"}, {"system": 1}, {"system": "elo", "x": 1}, {"system": "elo", "k": "x"}]),
}  # fmt: skip
# Null is the default of these.
MAY_BE_NULL = {"timezone_by", "keys", "rating"}


def definitions() -> Iterator[Case]:
    for name, (kinds, wrong) in DEFINITION.items():
        nothing = [] if name in MAY_BE_NULL else [b"null"]
        for value in [*of_kinds(*kinds), *nothing, *map(dumped, wrong)]:
            yield Case("PUT", "@new", b"{" + dumped(name) + b":" + value + b"}", field=name)
    for name in UNKNOWN:
        yield Case("PUT", "@new", b"{" + dumped(name) + b":1}", field=name)
    for document in documents():
        yield Case("PUT", "@new", document)
    for value in [*of_kinds("object"), b"null"]:
        yield Case("PUT", "@new", value)


NUMBERS = ["", "x", "1.5", "-1", "--1", "0x1", "null", "true", "%20", "1%00", "9" * 30, "-" + "9" * 30, "%D9%A3", "1,2", "NaN", "inf"]  # fmt: skip
WINDOW = {
    "period": ["dayly", "DAILY", "null", "%00", "daily%20", "x" * 2000, "%F0%9F%8F%86", "2025-10-24", "{}", "*"],
    "slot": ["today", "2025", "2025-13-01", "2025-10-32", "2025-02-30", "20251024", "2025-10-24T00", "2025-w43", "-1",
        "0000-00-00", "%00", "x" * 2000, "99999-01-01", "2025-10-24%0A", "{}", "*", "2025-1-2"],
    "group": ["country", "=", "country=BR,city=Rio", "city=Rio", "country=BR,country=BR", "Country=BR", "%3D%3D", ",",
        "country=%25FF", "%00=%00", "country=BR,", ",country=BR", "=BR", "country%20=BR"],
}  # fmt: skip
ROUTES = {
    "/entries": ["period", "slot", "group", "limit", "from", "cursor", "rank", "change"],
    "/entries/ada": ["period", "slot", "group"],
    "/entries/ada/around": ["period", "slot", "group", "above", "below"],
    "/percentile/0.5": ["period", "slot", "group"],
    "/distribution": ["period", "slot", "group", "buckets"],
    "/windows": ["period", "group", "limit"],
    "": [],
}
BAD: dict[str, list[str]] = {
    **WINDOW,
    "limit": [*NUMBERS, "0", "1001"],
    "rank": [*NUMBERS, "0"],
    "above": [*NUMBERS, "501"],
    "below": [*NUMBERS, "501"],
    "buckets": [*NUMBERS, "0", "1001"],
    "from": ["", "middle", "TOP", "top%20", "null", "1", "%00", "topbottom"],
    "change": ["", "maybe", "null", "2", "-1", "yes%20", "%00"],
    "cursor": [
        "",
        "x",
        "null",
        "%00",
        "AAAA",
        "x" * 5000,
        "eyJhIjoxfQ",
        "====",
        "%F0%9F%8F%86",
        "-_-",
        "gaFhAQ",
    ],
}


def queries() -> Iterator[Case]:
    missing = (400, 404, 422)
    for route, names in ROUTES.items():
        for name in names:
            for value in BAD[name]:
                # A slot that can be written but is not there is not found; so is a window.
                yield Case("GET", f"{route}?{name}={value}", field=name, status=missing)
            good = {"period": "daily", "slot": "2025-10-24", "group": "country=BR", "from": "top"}.get(
                name, "1"
            )
            yield Case("GET", f"{route}?{name}={good}&{name}={good}", field=name)
        for name in (
            "x",
            "",
            "Limit",
            "limit%20",
            "member",
            "%00",
            "a[]",
            "_method",
            "callback",
            "%F0%9F%8F%86",
        ):
            yield Case("GET", f"{route}?{name}=1")
        for broken in ("%FF=1", "x=%FF", "x=%C3%28", "x=%ED%A0%80", "limit=%F5", "=", "&=&", "%"):
            yield Case("GET", f"{route}?{broken}")
    for share in (
        "-0.1",
        "1.1",
        "nan",
        "NaN",
        "inf",
        "-inf",
        "1e400",
        "x",
        "0,5",
        "%20",
        "0x1",
        "%D9%A3.",
        "1/2",
        "--1",
        "null",
    ):
        yield Case("GET", f"/percentile/{share}", status=missing)


NAMES = [
    "a%20b", "%00", "a%00", "%0A", "a%0Ab", "%2F", "a%2Fb", "..%2F..", "%2E%2E%2Fx", "%C3%A9", "%F0%9F%8F%86", "a+b", "a:b", "a*",
    "a%25", "%257e", "x" * 65, "x" * 5000, "%FF", "%C3%28", "%ED%A0%80", "a;b", "a,b", "a=b", "@", "~", "a%7Fb", "{a}", "a|b", "a%5Cb",
    "a%22", "<a>", "a'b", "%E2%80%AE", "a!", "$a", "(a)", "%", "%zz", "%1", "..;", "%c0%ae%c0%ae",
]  # fmt: skip


# Members as good as any, who are not there: the journal has that they were asked to leave.
DELETABLE = {"%00", "nobody", "%20", ".", "..", "%2F", "a/b/c"}


def paths() -> Iterator[Case]:
    refused = (400, 403, 404, 422)
    for name in NAMES:
        for method, path in (
            ("GET", "/v1/projects/{}/boards"),
            ("GET", "/v1/projects/{}/boards/arcade"),
            ("GET", "/v1/projects/acme/boards/{}/entries"),
            ("GET", "/v1/projects/acme/boards/{}"),
            ("DELETE", "/v1/projects/acme/boards/{}"),
        ):
            yield Case(method, "!" + path.format(name), status=refused)
        for method, path in (("PUT", "/v1/projects/acme/boards/{}"), ("PUT", "/v1/projects/{}/boards/x")):
            yield Case(method, "!" + path.format(name), b"{}", status=refused)
        yield Case("POST", "!" + f"/v1/projects/acme/boards/{name}/scores", VALID, status=refused)
    for member in (
        "x" * 257,
        "%C3%A9" * 129,
        "%FF",
        "%C3%28",
        "%ED%A0%80",
        "%00",
        "nobody",
        "%20",
        ".",
        "..",
        "%2F",
        "a/b/c",
    ):
        yield Case("GET", f"/entries/{member}", status=refused)
        yield Case("GET", f"/entries/{member}/around", status=refused)
        if member not in DELETABLE:
            yield Case("DELETE", f"/entries/{member}", status=refused)
    for path in (
        "/",
        "//",
        "/x",
        "/scores/",
        "/scores/x",
        "/entries/",
        "//entries",
        "/windows/",
        "/percentile",
        "/percentile/",
    ):
        yield Case("GET", path, status=(404, 405, 422))
    for path in (
        "/v1",
        "/v1/",
        "/v1//",
        "/v2/projects",
        "/v1/projects/",
        "/V1/projects",
        "/v1/projects/a",
        "//v1/projects",
        "/v1/projects//boards",
    ):
        yield Case("GET", "!" + path, status=(404, 405, 422))


def methods() -> Iterator[Case]:
    """Those that a path lacks; the server itself refuses what is no method at all."""
    for path in ("", "/scores", "/scores/batch", "/entries", "/windows", "/distribution", "/percentile/0.5"):
        for method in ("PATCH", "OPTIONS", "TRACE", "PROPFIND", "LOCK", "REPORT", "SEARCH", "MKCOL", "COPY"):
            yield Case(method, path, status=(405,))
    for path in (
        "/v1/projects",
        "/v1/projects/acme/boards",
        "/",
        "/docs",
        "/openapi.json",
        "/healthz",
        "/readyz",
    ):
        for method in ("PATCH", "OPTIONS", "POST", "PUT", "DELETE"):
            yield Case(method, "!" + path, b"", status=(405,))
    for path in ("/scores", "/scores/batch"):
        for method in ("GET", "HEAD", "PUT", "DELETE"):
            yield Case(method, path, status=(405,))


CREDENTIALS = [
    b"", b"Bearer", b"Bearer ", b"bearer", b"Basic YTpi", b"Bearer x", b"Bearer lk_x", b"Bearer \xff\xfe", b"x" * 5000, b"Bearer a.b.c",
    b"Bearer eyJhbGciOiJub25lIn0.e30.", b"Bearer " + b"x" * 20_000, b"Digest x", b"Bearer eyJ..", b"Token x",
]  # fmt: skip
MEDIA_TYPES = [
    b"text/plain", b"text/json", b"application/xml", b"multipart/form-data; boundary=x", b"application/jsonx", b"json", b"*/*",
    b"application/*", b"\xff", b"application/x-www-form-urlencoded", b"application/json, text/plain", b"application/octet-stream",
    b"application/json; charset=utf-16", b"application/json; charset=latin-1", b'application/json; charset="ebcdic"',
]  # fmt: skip
CODINGS = [
    b"br", b"deflate", b"compress", b"gzip, gzip", b"gzip,", b"\xff", b"*", b"gzip;q=1", b"x" * 500, b"aes128gcm", b"identity, gzip",
]  # fmt: skip
CARRYING = [
    ("POST", "/scores"), ("POST", "/scores/batch"), ("POST", "/matches"), ("POST", "/entries/among"), ("PUT", "@new"),
]  # fmt: skip


def credentials() -> Iterator[Case]:
    asked = [("GET", "/entries"), ("DELETE", ""), *CARRYING]
    for given in CREDENTIALS:
        for method, path in asked:
            body = VALID if (method, path) in CARRYING else None
            yield Case(method, path, body, {"Authorization": given}, status=(401,))


def media_types() -> Iterator[Case]:
    for method, path in CARRYING:
        for kind in MEDIA_TYPES:
            yield Case(method, path, VALID, {"Content-Type": kind}, status=(415,))


def codings() -> Iterator[Case]:
    known = (
        (b"gzip", b"zstd", partial(gzip.compress, mtime=0)),
        (b"zstd", b"gzip", zstandard.compress),
    )
    bombs = {coding: compress(b" " * 2**26) for coding, _, compress in known}
    for method, path in CARRYING:
        for coding in CODINGS:
            yield Case(method, path, VALID, {"Content-Encoding": coding}, status=(415,))
        for coding, other, compress in known:
            encoded, whole = {"Content-Encoding": coding}, compress(VALID)
            for length in range(0, len(whole), 2):
                yield Case(method, path, whole[:length], encoded)
            yield Case(method, path, VALID, encoded)
            yield Case(method, path, whole + b"x", encoded)
            yield Case(method, path, whole, {"Content-Encoding": other})
            yield Case(method, path, bombs[coding], encoded, status=(413,))


def keys() -> Iterator[Case]:
    for path, body in (("/scores", VALID), ("/scores/batch", b"[" + VALID + b"]")):
        for key in (b"", b"x" * 201, b"\xff", b"\xc3\xa9", b"a\tb", b"x" * 8000):
            yield Case("POST", path, body, {"Idempotency-Key": key}, field="Idempotency-Key", status=(422,))
    for key in (b"k", b"other"):
        yield Case("POST", "/scores", with_value("id", b'"another"'), {"Idempotency-Key": key}, field="id")


def groups_of_cases() -> dict[str, list[Case]]:
    made: dict[str, Iterable[Case]] = {
        "bodies": bodies(),
        "definitions": definitions(),
        "queries": queries(),
        "paths": paths(),
        "methods": methods(),
        "credentials": credentials(),
        "media types": media_types(),
        "encodings": codings(),
        "keys": keys(),
    }
    return {name: list(cases) for name, cases in made.items()}
