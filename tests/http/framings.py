"""Requests as bytes, good and bad, with what RFC 9112 makes of them; each is to be followed by a canary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from laurels.http.server import heads

if TYPE_CHECKING:
    from collections.abc import Iterator

END: Final = b"\r\n\r\n"
KINDS: Final = (
    "lengths",
    "codings",
    "chunks",
    "request_lines",
    "targets",
    "headers",
    "sizes",
    "connections",
    "upgrades",
    "pipelines",
)

# What becomes of the connection: the canary is answered; the server closes; what follows still belongs to the
# request, so that the client has to close.
After = Literal["goes on", "closes", "waits"]


@dataclass(frozen=True)
class Framing:
    name: str
    sent: bytes
    statuses: tuple[int, ...]
    """Of its answers, interim ones included."""
    after: After
    counted: tuple[str, ...] = ()
    """The members of the submissions that count."""


@dataclass(frozen=True)
class Corpus:
    """What is sent to a board, with a key; members end in a tag of one letter."""

    board: str
    key: str
    tag: str

    def member(self, name: str) -> str:
        return f"{name}-{self.tag}"

    def body(self, name: str = "first") -> bytes:
        return b'{"member":"%b","score":1}' % self.member(name).encode()

    def head(
        self,
        *lines: bytes,
        start: bytes | None = None,
        name: str = "first",
        host: bytes = b"Host: laurels",
        kind: bytes = b"Content-Type: application/json",
    ) -> bytes:
        """A head that ends before its framing."""
        start = self.start() if start is None else start
        named = (host, b"Authorization: Bearer " + self.key.encode(), kind, b"X-Request-Id: " + name.encode())
        return b"\r\n".join((start, *(line for line in named if line), *lines)) + b"\r\n"

    def start(self, method: bytes = b"POST", target: bytes = b"", version: bytes = b"HTTP/1.1") -> bytes:
        return b"%b %b %b" % (method, target or self.target(), version)

    def target(self) -> bytes:
        return f"{self.board}/scores".encode()

    def post(
        self,
        *lines: bytes,
        name: str = "first",
        length: bytes | None = None,
        start: bytes | None = None,
        **given: object,
    ) -> bytes:
        """A score, framed by its length."""
        body = self.body(name)
        length = b"Content-Length: %d" % len(body) if length is None else length
        framing = (length,) if length else ()
        return self.head(*lines, *framing, start=start, name=name, **given) + b"\r\n" + body  # pyright: ignore[reportArgumentType]  # as `head` has them

    def before(self) -> bytes:
        """A score with the same head as the plain one."""
        return self.post().replace(b"first-", b"prior-")

    def canary(self) -> bytes:
        return self.post(b"Connection: close", name="canary")

    def chunked(
        self, coded: bytes | None = None, line: bytes = b"Transfer-Encoding: chunked", *lines: bytes
    ) -> bytes:
        """A score, framed in chunks."""
        return self.head(line, *lines) + b"\r\n" + (self.coded() if coded is None else coded)

    def coded(self, size: bytes = b"%x", extension: bytes = b"", end: bytes = b"0\r\n\r\n") -> bytes:
        body = self.body()
        written = size % len(body) if b"%" in size else size
        return b"%b%b\r\n%b\r\n%b" % (written, extension, body, end)

    def of_kind(self, kind: str) -> Iterator[Framing]:
        return getattr(self, kind)()

    def good(self, name: str, sent: bytes, *statuses: int, after: After = "goes on") -> Framing:
        return Framing(name, sent, statuses or (200,), after, (self.member("first"),))

    def bad(self, name: str, sent: bytes, *statuses: int) -> Framing:
        return Framing(name, sent, statuses or (400,), "closes")

    def lengths(self) -> Iterator[Framing]:
        size = len(self.body())
        yield self.good("plain", self.post())
        for name, line in {
            "length with zeros before it": b"Content-Length: 000%d",
            "length with spaces around it": b"Content-Length: \t %d \t",
            "length without a space": b"Content-Length:%d",
            "length in capitals": b"CONTENT-LENGTH: %d",
        }.items():
            yield self.good(name, self.post(length=line % size))
        for name, line in {
            "length twice": b"Content-Length: %d\r\nContent-Length: %d",
            "length listed twice": b"Content-Length: %d, %d",
        }.items():
            yield self.bad(name, self.post(length=line % (size, size)))
        for name, line in {
            "length twice, the first shorter": b"Content-Length: 3\r\nContent-Length: %d",
            "length twice, the second shorter": b"Content-Length: %d\r\nContent-Length: 3",
            "length twice, the first empty": b"Content-Length:\r\nContent-Length: %d",
            "length with plus": b"Content-Length: +%d",
            "length with minus": b"Content-Length: -%d",
            "length in hex": b"Content-Length: 0x%x",
            "length with a point": b"Content-Length: %d.0",
            "length with an exponent": b"Content-Length: %de0",
            "length with a parameter": b"Content-Length: %d;x=1",
            "length in quotes": b'Content-Length: "%d"',
            "length with an underscore": b"Content-Length: 0_%d",
            "length with a space inside": b"Content-Length: 0 %d",
            "length with NUL": b"Content-Length: %d\0",
            "length with another script's digit": b"Content-Length: %d\xc2\xb2",
            "length with vertical tab": b"Content-Length: \x0b%d",
            "length folded": b"Content-Length:\r\n %d",
            "length with a space before its colon": b"Content-Length : %d",
            "length with a tab before its colon": b"Content-Length\t: %d",
            "length behind a space": b" Content-Length: %d",
            "length behind CR": b"X: y\rContent-Length: %d",
            "length behind LF": b"X: y\nContent-Length: %d",
        }.items():
            yield self.bad(name, self.post(length=line % size))
        yield self.bad("length empty", self.post(length=b"Content-Length:"))
        yield self.bad("length beyond 64 bits", self.post(length=b"Content-Length: 18446744073709551616"))
        yield self.bad("length of 400 digits", self.post(length=b"Content-Length: " + b"9" * 400))
        yield Framing(
            "length of 64 bits", self.post(length=b"Content-Length: 18446744073709551615"), (413,), "waits"
        )
        yield Framing(
            "length beyond the limit", self.post(length=b"Content-Length: 1048577"), (413,), "waits"
        )
        for name, line in {
            "no length": b"",
            "length 0": b"Content-Length: 0",
            "length with an underscore in its name": b"Content_Length: %d" % size,
            "length that is too short": b"Content-Length: %d" % (size - 5),
            "length that is too long": b"Content-Length: %d" % (size + 5),
        }.items():
            yield self.bad(name, self.post(length=line), 400, 400)
        yield Framing(
            "length that takes what follows",
            self.post(length=b"Content-Length: %d" % (size + len(self.canary()))),
            (400,),
            "waits",
        )
        yield Framing(
            "length that what follows does not fill", self.post(length=b"Content-Length: 99999"), (), "waits"
        )
        yield Framing("no length and no body", self.head() + b"\r\n", (400,), "goes on")

    def codings(self) -> Iterator[Framing]:
        for name, line in {
            "chunked": b"Transfer-Encoding: chunked",
            "chunked in capitals": b"TRANSFER-ENCODING: CHUNKED",
            "chunked with spaces around it": b"Transfer-Encoding: \t chunked ",
        }.items():
            yield self.good(name, self.chunked(line=line))
        for name, line in {
            "coding with a letter more": b"Transfer-Encoding: xchunked",
            "coding with a letter less": b"Transfer-Encoding: chunke",
            "coding with a space inside": b"Transfer-Encoding: chun ked",
            "coding in quotes": b'Transfer-Encoding: "chunked"',
            "coding with a parameter": b"Transfer-Encoding: chunked;q=1",
            "coding with vertical tab": b"Transfer-Encoding: \x0bchunked",
            "coding with NUL": b"Transfer-Encoding: chunked\0",
            "coding beyond ASCII": b"Transfer-Encoding: \xffchunked",
            "coding with a tab behind it": b"Transfer-Encoding: chunked\t",  # stricter than it need be
            "coding folded": b"Transfer-Encoding:\r\n chunked",
            "coding empty": b"Transfer-Encoding:",
            "coding unknown": b"Transfer-Encoding: cow",
            "identity": b"Transfer-Encoding: identity",
            "chunked twice": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            "chunked listed twice": b"Transfer-Encoding: chunked, chunked",
            "chunked before another": b"Transfer-Encoding: chunked, gzip",
            "chunked before identity": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
            "chunked with a comma": b"Transfer-Encoding: chunked,",
            "coding with a space before its colon": b"Transfer-Encoding : chunked",
            "coding with NUL in its name": b"Transfer-Encoding\0: chunked",
            "coding behind a space": b" Transfer-Encoding: chunked",
            "coding behind CR": b"X: y\rTransfer-Encoding: chunked",
            "coding behind LF": b"X: y\nTransfer-Encoding: chunked",
            "chunked before a length": b"Transfer-Encoding: chunked\r\nContent-Length: 5",
            "chunked after a length": b"Content-Length: 5\r\nTransfer-Encoding: chunked",
            "chunked after length 0": b"Content-Length: 0\r\nTransfer-Encoding: chunked",
            "identity and a length": b"Transfer-Encoding: identity\r\nContent-Length: 26",
        }.items():
            yield self.bad(name, self.chunked(line=line))
        for name, line in {
            "chunked after gzip": b"Transfer-Encoding: gzip, chunked",
            "chunked after identity": b"Transfer-Encoding: identity\r\nTransfer-Encoding: chunked",
        }.items():
            yield self.bad(name, self.chunked(line=line), 501)
        old = self.head(b"Transfer-Encoding: chunked", start=self.start(version=b"HTTP/1.0"))
        yield self.bad("chunked in HTTP/1.0", old + b"\r\n" + self.coded())
        yield self.good("coding with an underscore in its name", self.post(b"Transfer_Encoding: chunked"))
        hidden = b"0\r\n\r\n" + self.post(name="smuggled")
        both = b"Content-Length: %d" % len(hidden), b"Transfer-Encoding: chunked"
        yield self.bad("a request behind a last chunk, within a length", self.head(*both) + b"\r\n" + hidden)

    def chunks(self) -> Iterator[Framing]:
        for name, size in {
            "chunk size in capitals": b"%X",
            "chunk size with zeros before it": b"000000000000000000000%x",
        }.items():
            yield self.good(name, self.chunked(self.coded(size)))
        for name, size in {
            "chunk size with 0x": b"0x%x",
            "chunk size with minus": b"-%x",
            "chunk size with plus": b"+%x",
            "chunk size with a space before it": b" %x",
            "chunk size with a space behind it": b"%x ",
            "chunk size with a tab behind it": b"%x\t",
            "chunk size with an underscore": b"0_%x",
            "chunk size with a point": b"%x.0",
            "chunk size beyond 64 bits": b"1000000000000000%x",
            "chunk size of letters": b"zz",
            "chunk size empty": b"",
            "chunk size that is too small": b"2",
            "chunk size that is too large": b"1d",
            "chunk size with NUL": b"%x\0",
            "chunk size with CR": b"%x\r",
        }.items():
            yield self.bad(name, self.chunked(self.coded(size)))
        for name, extension in {
            "extension": b";a",
            "extension with a value": b";a=b;c=d",
            "extension in quotes": b';a="b; c"',
        }.items():
            yield self.good(name, self.chunked(self.coded(extension=extension)))
        for name, extension in {
            "extension with NUL": b";a=\0",
            "extension with LF": b";a\n",
            "extension with LF in quotes": b';a="\n"',
            "extension with CR": b";a\rb",
        }.items():
            yield self.bad(name, self.chunked(self.coded(extension=extension)))
        body = self.body()
        size = b"%x" % len(body)
        for name, coded in {
            "LF behind a chunk size": size + b"\n" + body + b"\r\n0\r\n\r\n",
            "LF behind a chunk": size + b"\r\n" + body + b"\n0\r\n\r\n",
            "nothing behind a chunk": size + b"\r\n" + body + b"0\r\n\r\n",
            "CR behind a chunk": size + b"\r\n" + body + b"\r0\r\n\r\n",
            "no last chunk": size + b"\r\n" + body + b"\r\n",
            "no end behind the last chunk": size + b"\r\n" + body + b"\r\n0\r\n",
            "LF at the end of the trailers": size + b"\r\n" + body + b"\r\n0\r\nX: y\n\n",
            "no chunks": body,
        }.items():
            yield self.bad(name, self.chunked(coded))
        yield Framing("chunks of nothing", self.chunked(b"0\r\n\r\n"), (400,), "goes on")
        yield self.good(
            "a chunk for each byte",
            self.chunked(b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"),
        )
        yield self.good("trailer", self.chunked(self.coded(end=b"0\r\nX-Trailer: y\r\n\r\n")))
        yield self.good(
            "trailer that would be another key",
            self.chunked(self.coded(end=b"0\r\nAuthorization: Bearer x\r\n\r\n")),
        )
        yield self.good(
            "trailer that would be another request",
            self.chunked(self.coded(end=b"0\r\nX-Request-Id: smuggled\r\n\r\n")),
        )
        yield self.good(
            "trailer that would be another host", self.chunked(self.coded(end=b"0\r\nHost: x\r\n\r\n"))
        )
        yield self.bad("trailer without colon", self.chunked(self.coded(end=b"0\r\nX-Trailer\r\n\r\n")))
        yield self.bad(
            "trailer with a length", self.chunked(self.coded(end=b"0\r\nContent-Length: 5\r\n\r\n"))
        )
        yield self.bad(
            "trailer with a coding", self.chunked(self.coded(end=b"0\r\nTransfer-Encoding: chunked\r\n\r\n"))
        )
        yield Framing(
            "chunk behind the last",
            self.chunked(self.coded() + b"5\r\nhello\r\n"),
            (200, 400),
            "closes",
            (self.member("first"),),
        )

    def request_lines(self) -> Iterator[Framing]:
        path = self.target()
        for name, before in {"CRLF": b"\r\n", "CRLF twice": b"\r\n\r\n", "LF": b"\n"}.items():
            yield self.good(f"{name} before the request", before + self.post())
        # Whitespace may be taken for one space (RFC 9112, 3).
        yield self.good("two spaces before the target", self.post(start=b"POST  " + path + b" HTTP/1.1"))
        for name, start in {
            "space before the method": b" POST %b HTTP/1.1",
            "tab behind the method": b"POST\t%b HTTP/1.1",
            "space behind the version": b"POST %b HTTP/1.1 ",
            "method in small letters": b"post %b HTTP/1.1",
            "unknown method": b"SUBMIT %b HTTP/1.1",
            "method with a letter more": b"POSTS %b HTTP/1.1",
            "version in small letters": b"POST %b http/1.1",
            "version of another protocol": b"POST %b HTTPS/1.1",
            "version without a point": b"POST %b HTTP/11",
            "version with more": b"POST %b HTTP/1.1.1",
            "version of two digits": b"POST %b HTTP/01.1",
            "no method": b"%b HTTP/1.1",
            "a line of headers first": b"X: y\r\nPOST %b HTTP/1.1",
            "CR behind the version": b"POST %b HTTP/1.1\r",
            "space in the target": b"POST %b?a b HTTP/1.1",
            "tab in the target": b"POST %b\tx HTTP/1.1",
            "NUL in the target": b"POST %b\0 HTTP/1.1",
            "DEL in the target": b"POST %b\x7f HTTP/1.1",
            "target beyond ASCII": b"POST %b\xc3\xa9 HTTP/1.1",
            "fragment": b"POST %b#x HTTP/1.1",
        }.items():
            yield self.bad(name, self.post(start=start % path))
        for version in (b"HTTP/0.9", b"HTTP/1.2", b"HTTP/2.0", b"HTTP/3.0", b"HTTP/9.9"):
            yield self.bad(version.decode(), self.post(start=self.start(version=version)), 505)
        yield self.bad("HTTP/0.9 without a version", b"GET %b/entries\r\n\r\n" % self.board.encode(), 505)
        yield self.bad("HTTP/2 preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505)
        yield self.bad("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
        yield self.bad("JSON", self.body() + b"\r\n\r\n")
        yield self.bad("LF for every line end", self.post().replace(b"\r\n", b"\n"))
        yield self.bad("CR for every line end", self.post().replace(b"\r\n", b"\r"))
        yield Framing("nothing", b"", (), "goes on")
        yield Framing("empty lines alone", b"\r\n\r\n\r\n", (), "goes on")

    def targets(self) -> Iterator[Framing]:
        path = self.target()
        for name, target in {
            "absolute form": b"http://laurels%b",
            "absolute form of another host": b"http://elsewhere.example:81%b",
            "absolute form in capitals": b"HTTP://laurels%b",
            "absolute form of https": b"https://laurels%b",
        }.items():
            yield self.good(name, self.post(start=self.start(target=target % path)))
        yield self.good(
            "encoded letter",
            self.post(start=self.start(target=path.replace(b"/projects/a", b"/projects/%61"))),
        )
        for name, target in {
            "absolute form with a user": b"http://me@laurels%b",
            "absolute form of ftp": b"ftp://laurels%b",
            "absolute form without a host": b"http://%b",
            "path without slash": b"x%b",
            "asterisk": b"*",
            "authority": b"laurels:80",
        }.items():
            asked = target.replace(b"%b", path)
            yield self.bad(name, self.post(start=self.start(target=asked)))
        for name, target, status in (
            ("encoded slash", path.replace(b"/scores", b"%2Fscores"), 405),
            ("two slashes", path.replace(b"/scores", b"//scores"), 404),
            ("dots", path.replace(b"/scores", b"/../x/scores"), 404),
            ("encoded NUL", path.replace(b"/scores", b"%00/scores"), 422),
            ("encoded line end", path + b"%0D%0AX:%20y", 404),
            ("encoded bytes that are not UTF-8", path + b"%FF", 404),
            ("encoding that is none", path + b"%zz", 404),
            ("query", path + b"?a=1", 422),
            ("query that is not UTF-8", path + b"?a=%FF", 422),
            ("absolute form without a path", b"http://laurels?x=1", 405),
        ):
            yield Framing(name, self.post(start=self.start(target=target)), (status,), "goes on")
        yield Framing("OPTIONS of the server", self.post(start=b"OPTIONS * HTTP/1.1"), (404,), "goes on")
        for name, target in (("CONNECT", b"laurels:443"), ("CONNECT to a path", path)):
            yield self.bad(name, self.post(start=self.start(b"CONNECT", target)), 501)

    def headers(self) -> Iterator[Framing]:
        yield self.bad("no host", self.post(host=b""))
        yield self.bad("two hosts", self.post(host=b"Host: laurels\r\nHost: laurels"))
        for name, value in {
            "empty": b"",
            "with a port": b"laurels:8000",
            "an IPv6 address": b"[::1]:8000",
            "in capitals": b"LAURELS",
        }.items():
            yield self.good(f"host {name}", self.post(host=b"Host: " + value))
        for name, value in {
            "with a space": b"a b",
            "with a path": b"a/b",
            "with a user": b"me@a",
            "that is a list": b"a, b",
            "beyond ASCII": b"caf\xc3\xa9",
            "with a port of letters": b"a:b",
        }.items():
            yield self.bad(f"host {name}", self.post(host=b"Host: " + value))
        for name, line in {
            "without a value": b"X:",
            "without a space": b"X:y",
            "beyond ASCII": b"X: \xff\xc3\xa9",
            "with a tab": b"X:\ty",
            "of every sign that a name may have": b"!#$%&'*+-.^_`|~: y",
            "named like one of ours": b"X-Request-Ids: z",
        }.items():
            yield self.good(f"header {name}", self.post(line))
        for name, line in {
            "without colon": b"X",
            "without name": b": y",
            "with a space in its name": b"X y: z",
            "with a space before its colon": b"X : y",
            "with NUL in its name": b"X\0: y",
            "with brackets in its name": b"(X): y",
            "with a name beyond ASCII": b"\xff: y",
            "with NUL": b"X: a\0b",
            "with a control character": b"X: \x01",
            "with DEL": b"X: \x7f",
            "with CR": b"X: a\rb",
            "with LF": b"X: a\nb",
            "that is folded": b"X: a\r\n b",
            "that is folded by a tab": b"X: a\r\n\tb",
            "behind a space": b" X: y",
        }.items():
            yield self.bad(f"header {name}", self.post(line))
        yield self.bad("space before the first header", self.post(host=b" X: y\r\nHost: laurels"))
        yield self.good(
            "key with a space behind it", self.post().replace(self.key.encode(), self.key.encode() + b" \t")
        )
        yield self.good(
            "media type with a space behind it", self.post(kind=b"Content-Type: application/json ")
        )
        key = b"Authorization: Bearer " + self.key.encode()
        yield Framing("no key", self.post().replace(key, b"X: y"), (401,), "goes on")
        yield Framing(
            "two keys", self.post(b"Authorization: Bearer x"), (200,), "goes on", (self.member("first"),)
        )
        yield self.good("expecting to go on", self.post(b"Expect: 100-continue"), 100, 200)
        yield self.good("expecting something else", self.post(b"Expect: the unexpected"))
        yield self.bad(
            "expecting to go on without a key", self.post(b"Expect: 100-continue").replace(key, b"X: y"), 401
        )
        old = self.post(b"Expect: 100-continue", start=self.start(version=b"HTTP/1.0"))
        yield self.good("expecting to go on in HTTP/1.0", old, after="closes")

    def sizes(self) -> Iterator[Framing]:
        """At the limits, and beyond."""
        some = 5 + heads.MOST_HEADERS - 5
        fillers = [b"X-%d: y" % number for number in range(some - 5)]
        yield self.good("as many headers as there may be", self.post(*fillers))
        yield self.bad("a header more", self.post(*fillers, b"X: y"), 431)
        yield self.bad("thousands of headers", self.post(*(b"X: y" for _ in range(9000))), 431)
        yield self.good("a header of 32 KiB", self.post(b"X: " + b"y" * 2**15))
        yield self.bad("a header of 64 KiB", self.post(b"X: " + b"y" * heads.HEAD_BYTES), 431)
        yield self.bad("a header of 1 MiB", self.post(b"X: " + b"y" * 2**20), 431)
        yield self.bad("a header's name of 1 MiB", self.post(b"X" * 2**20 + b": y"), 431)
        yield self.bad("a header without end", self.head() + b"X: " + b"y" * 2**20, 431)
        query = self.target() + b"?x="
        longest = query + b"y" * (heads.TARGET_BYTES - len(query))
        yield Framing("the longest target", self.post(start=self.start(target=longest)), (422,), "goes on")
        yield self.bad("a longer target", self.post(start=self.start(target=longest + b"y")), 414)
        yield self.bad("a target of 1 MiB", self.post(start=self.start(target=query + b"y" * 2**20)), 414)
        yield self.bad("a target without end", b"POST " + query + b"y" * 2**20, 414)
        yield self.bad("a method without end", b"P" * 2**17)
        yield self.bad("empty lines without end", b"\r\n" * 2**17, 431)
        long = b";a=" + b"b" * 2**17
        yield self.bad("an extension of 128 KiB", self.chunked(self.coded(extension=long)), 431)
        end = b"0\r\n" + b"X: y\r\n" * 2**15 + b"\r\n"
        yield self.bad("trailers of 192 KiB", self.chunked(self.coded(end=end)), 431)
        yield self.good("an extension of 8 KiB", self.chunked(self.coded(extension=long[: 2**13])))

    def connections(self) -> Iterator[Framing]:
        for name, line in {
            "close": b"Connection: close",
            "CLOSE": b"CONNECTION: CLOSE",
            "in a list": b"Connection: keep-alive, close",
            "twice": b"Connection: keep-alive\r\nConnection: close",
        }.items():
            yield self.good(f"connection {name}", self.post(line), after="closes")
        yield self.good("connection closed", self.post(b"Connection: closed"))
        for name, lines in {"": (), " with keep-alive": (b"Connection: keep-alive",)}.items():
            sent = self.post(*lines, start=self.start(version=b"HTTP/1.0"))
            yield self.good(f"HTTP/1.0{name}", sent, after="closes")
        sent = self.post(host=b"", start=self.start(version=b"HTTP/1.0"))
        yield self.good("HTTP/1.0 without host", sent, after="closes")

    def upgrades(self) -> Iterator[Framing]:
        h2c = (
            b"Connection: Upgrade, HTTP2-Settings",
            b"Upgrade: h2c",
            b"HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA",
        )
        for name, lines in {
            "h2c": h2c,
            "websocket": (
                b"Connection: Upgrade",
                b"Upgrade: websocket",
                b"Sec-WebSocket-Version: 13",
                b"Sec-WebSocket-Key: AQIDBAUGBwgJCgsMDQ4PEA==",
            ),
            "TLS": (b"Connection: upgrade", b"Upgrade: TLS/1.0"),
            "anything": (b"Connection: UPGRADE", b"Upgrade: anything/9, else"),
            "nothing": (b"Connection: upgrade", b"Upgrade:"),
            "two": (b"Connection: upgrade", b"Upgrade: h2c", b"Upgrade: websocket"),
            "without connection": (b"Upgrade: h2c",),
            "of a connection alone": (b"Connection: Upgrade",),
            "in two lines of connection": (
                b"Connection: keep-alive",
                b"Connection: Upgrade",
                b"Upgrade: h2c",
            ),
            "settings alone": (b"HTTP2-Settings: AAMAAABk",),
        }.items():
            yield self.good(f"upgrade: {name}", self.post(*lines))
        offer = b"Connection: Upgrade", b"Upgrade: h2c"
        yield self.good("upgrade: chunked", self.chunked(None, b"Transfer-Encoding: chunked", *h2c))
        yield self.good("upgrade: expecting", self.post(*h2c, b"Expect: 100-continue"), 100, 200)
        yield self.good(
            "upgrade: closing", self.post(b"Connection: upgrade, close", b"Upgrade: x"), after="closes"
        )
        old = self.post(*offer, start=self.start(version=b"HTTP/1.0"))
        yield self.good("upgrade: HTTP/1.0", old, after="closes")
        entries = b"GET %b/entries HTTP/1.1" % self.board.encode()
        yield Framing("upgrade: question", self.head(*h2c, start=entries) + b"\r\n", (200,), "goes on")
        hidden = self.post(name="smuggled")
        length = b"Content-Length: %d" % len(hidden)
        yield Framing(
            "upgrade: a request as body", self.head(*offer, length) + b"\r\n" + hidden, (400,), "goes on"
        )
        yield Framing(
            "upgrade: a request as body of a question",
            self.head(*offer, length, start=entries) + b"\r\n" + hidden,
            (200,),
            "goes on",
        )
        coded = b"%x\r\n%b\r\n0\r\n\r\n" % (len(hidden), hidden)
        yield Framing(
            "upgrade: a request as chunk",
            self.chunked(coded, b"Transfer-Encoding: chunked", *offer),
            (400,),
            "goes on",
        )
        yield self.bad(
            "upgrade: length twice", self.post(*offer, length=b"Content-Length: 5\r\nContent-Length: 6")
        )
        yield self.bad(
            "upgrade: chunked and a length",
            self.chunked(None, b"Transfer-Encoding: chunked", *offer, b"Content-Length: 5"),
        )
        yield self.bad("upgrade: no host", self.post(*offer, host=b""))
        second = self.post(*offer, name="second")
        both = self.member("first"), self.member("second")
        yield Framing("upgrade: twice in a row", self.post(*offer) + second, (200, 200), "goes on", both)
        websocket = (
            self.head(*offer, b"Sec-WebSocket-Key: x", start=entries)
            + b"\r\n"
            + b"\x81\x85\x01\x02\x03\x04hello"
        )
        yield self.bad("upgrade: frames behind it", websocket, 200, 400)

    def pipelines(self) -> Iterator[Framing]:
        first, second = self.post(), self.post(name="second")
        one, two = self.member("first"), self.member("second")
        wrong = first.replace(b'"score":1', b'"score":x')
        entries = b"GET %b/entries HTTP/1.1" % self.board.encode()
        question = self.head(start=entries) + b"\r\n"
        yield Framing("two", first + second, (200, 200), "goes on", (one, two))
        yield Framing("a question and a score", question + second, (200, 200), "goes on", (two,))
        yield Framing(
            "a score, a question, a score", first + question + second, (200,) * 3, "goes on", (one, two)
        )
        yield Framing("a bad body and a score", wrong + second, (400, 200), "goes on", (two,))
        key = self.key.encode()
        yield Framing(
            "a bad key and a score",
            first.replace(key, b"x" * len(key)) + second,
            (401, 200),
            "goes on",
            (two,),
        )
        yield Framing("empty lines between", first + b"\r\n\r\n" + second, (200, 200), "goes on", (one, two))
        yield Framing("chunks and a length", self.chunked() + second, (200, 200), "goes on", (one, two))
        yield Framing("a length and chunks", second + self.chunked(), (200, 200), "goes on", (one, two))
        yield Framing("nonsense behind a score", first + b"nonsense\r\n\r\n", (200, 400), "closes", (one,))
        yield Framing(
            "a bad length behind a score",
            first + self.post(length=b"Content-Length: -1"),
            (200, 400),
            "closes",
            (one,),
        )
        yield Framing(
            "a bad chunk behind a score", first + self.chunked(b"zz\r\n"), (200, 400), "closes", (one,)
        )
        yield Framing(
            "too many headers behind a score",
            first + self.post(*(b"X: y" for _ in range(150))),
            (200, 431),
            "closes",
            (one,),
        )
        yield Framing("a score behind nonsense", b"nonsense\r\n\r\n" + first, (400,), "closes")
        yield Framing(
            "a score behind a bad length", self.post(length=b"Content-Length: -1") + second, (400,), "closes"
        )
        yield Framing(
            "a score behind the last", self.post(b"Connection: close") + second, (200,), "closes", (one,)
        )
        yield Framing(
            "a score behind HTTP/1.0",
            self.post(start=self.start(version=b"HTTP/1.0")) + second,
            (200,),
            "closes",
            (one,),
        )
        hidden = self.post(name="smuggled")
        asked = self.head(b"Content-Length: %d" % len(hidden), start=entries) + b"\r\n" + hidden
        yield Framing("a question whose body is a request", asked, (200,), "goes on")
        many = b"".join(self.post(name=f"m{number:03}") for number in range(150))
        names = tuple(self.member(f"m{number:03}") for number in range(150))
        yield Framing("many at once", many, (200,) * 150, "goes on", names)
