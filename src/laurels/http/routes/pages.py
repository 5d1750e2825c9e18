"""Serves the pages and their files, if the package was built with them.

All addresses of a page get the same file, because the page reads its address in the browser. The file's
`<base>` is the root relative to the address, so links work behind a proxy that serves Laurels under a path.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import blake2b
from importlib import resources
from mimetypes import guess_type
from pathlib import Path
from typing import TYPE_CHECKING, Final

from starlette.responses import JSONResponse, Response

from laurels.errors import NotFound
from laurels.http.encoding import is_known
from laurels.http.operation import RecordedRoute
from laurels.http.problems import BY_KIND, EXPLANATIONS, type_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from starlette.requests import Request

INDEX: Final = "index.html"
EMBED: Final = "embed.html"
# The folder of files whose names change with their contents.
HASHED: Final = "assets/"
# The suffixes of the compressed copies of a file, the smallest first.
CODINGS: Final = {"br": ".br", "gzip": ".gz"}

# The addresses of each page.
PAGES: Final = {
    "/": INDEX,
    "/leaderboards": INDEX,  # below it is the API of the campuses
    "/boards": INDEX,
    "/boards/{rest:path}": INDEX,
    "/console": INDEX,
    "/console/{rest:path}": INDEX,
    "/docs": INDEX,
    "/embed/{rest:path}": EMBED,
}

LINKS: Final = {
    "openapi": "/openapi.json",
    "projects": "/v1/projects",
    "health": "/healthz",
    "readiness": "/readyz",
    "metrics": "/metrics",
}

POLICY: Final = (
    "default-src 'self'; img-src {images}; object-src 'none'; base-uri 'self'; form-action 'self'; "
    "frame-ancestors {framers}"
)
# Which sites may embed a page: every site may embed the one that is made for it.
FRAMERS: Final = {INDEX: "'none'", EMBED: "*"}

BASE: Final = b'<base href="./" />'
# Where a page learns which hosts its policy allows.
IMAGE_HOSTS: Final = b'<meta name="image-hosts" content="" />'
# Cached copies of a page, one for each depth of an address.
PAGES_KEPT: Final = 64


@dataclass(frozen=True)
class File:
    name: str
    content: bytes
    compressed: dict[str, bytes]
    """The compressed content by encoding."""
    image_hosts: tuple[str, ...] = ()
    """The other hosts whose images the page may show."""

    @classmethod
    def read(cls, root: Path, name: str, image_hosts: tuple[str, ...] = ()) -> File:
        beside = {coding: root / f"{name}{suffix}" for coding, suffix in CODINGS.items()}
        compressed = {coding: path.read_bytes() for coding, path in beside.items() if path.is_file()}
        return cls(name, (root / name).read_bytes(), compressed, image_hosts)

    @cached_property
    def tag(self) -> str:
        return f'"{blake2b(self.content, digest_size=16).hexdigest()}"'

    @cached_property
    def headers(self) -> dict[str, str]:
        kept = self.name.startswith(HASHED)
        return {
            "ETag": f"W/{self.tag}",  # the same for every coding
            "Cache-Control": "public, max-age=31536000, immutable" if kept else "no-cache",
            "Content-Security-Policy": POLICY.format(
                images=" ".join(("'self'", "data:", *self.image_hosts)),
                framers=FRAMERS.get(self.name, "'none'"),
            ),
            "Vary": "Accept-Encoding",
        }

    @cached_property
    def media_type(self) -> str:
        return guess_type(self.name)[0] or "application/octet-stream"

    def answer(self, request: Request) -> Response:
        if is_known(request, self.tag):
            return Response(status_code=304, headers=self.headers)
        for coding in _accepted(request, self.compressed):
            headers = {**self.headers, "Content-Encoding": coding}
            return Response(self.compressed[coding], headers=headers, media_type=self.media_type)
        return Response(self.content, headers=self.headers, media_type=self.media_type)

    def at_depth(self, depth: int) -> File:
        """The page for an address this many folders below the root."""
        base = b'<base href="%s" />' % (b"../" * depth or b"./")
        hosts = IMAGE_HOSTS.replace(b'""', b'"%s"' % " ".join(self.image_hosts).encode())
        content = self.content.replace(BASE, base, 1).replace(IMAGE_HOSTS, hosts, 1)
        return File(self.name, content, {"gzip": gzip.compress(content, mtime=0)}, self.image_hosts)


def routes(folder: Path | None = None, image_hosts: tuple[str, ...] = ()) -> list[RecordedRoute]:
    """The routes of the pages and their files; without built pages, a list of links at `/`."""
    root = folder or Path(str(resources.files("laurels"))) / "web"
    always = [
        RecordedRoute("/openapi.json", send_document),
        RecordedRoute("/problems/{kind}", explain_problem),
    ]
    if not (root / INDEX).is_file():
        return [*always, RecordedRoute("/", list_links)]
    files = {name: File.read(root, name, image_hosts) for name in names_of(root)}
    above = [name for name in files if not name.startswith(HASHED) and not name.endswith(".html")]
    return [
        *always,
        *(RecordedRoute(f"/{name}", _send_of(files, name)) for name in above),
        RecordedRoute(f"/{HASHED}{{name:path}}", _send_hashed(files)),
        *(RecordedRoute(path, _send_page(files[name])) for path, name in PAGES.items() if name in files),
    ]


async def list_links(_: Request) -> Response:
    return JSONResponse(LINKS)


async def send_document(request: Request) -> Response:
    return JSONResponse(request.app.openapi())


async def explain_problem(request: Request) -> Response:
    """Answers the address in a problem's `type`."""
    kind = BY_KIND.get(request.path_params["kind"])
    if kind is None:
        raise NotFound(f"there is no such kind of problem; known: {', '.join(BY_KIND)}")
    about = {"type": type_of(kind), "title": kind.title, "status": kind.status}
    return JSONResponse({**about, "explanation": EXPLANATIONS[kind]})


def names_of(root: Path) -> list[str]:
    """The names of the files to send, without hidden files and compressed copies."""
    names = (path.relative_to(root).as_posix() for path in sorted(root.rglob("*")) if path.is_file())
    apart = (".py", *CODINGS.values())
    return [name for name in names if not name.startswith((".", "__")) and not name.endswith(apart)]


def _send_of(files: dict[str, File], name: str) -> Callable[[Request], Awaitable[Response]]:
    async def send_file(request: Request) -> Response:
        return files[name].answer(request)

    return send_file


def _send_hashed(files: dict[str, File]) -> Callable[[Request], Awaitable[Response]]:
    async def send_hashed(request: Request) -> Response:
        file = files.get(HASHED + request.path_params["name"])
        if file is None:
            raise NotFound("there is no such file")
        return file.answer(request)

    return send_hashed


def _send_page(page: File) -> Callable[[Request], Awaitable[Response]]:
    at_depth = lru_cache(PAGES_KEPT)(page.at_depth)

    async def send_page(request: Request) -> Response:
        return at_depth(request.scope["path"].count("/") - 1).answer(request)

    return send_page


def _accepted(request: Request, codings: Iterable[str]) -> list[str]:
    """The encodings that the browser accepts, in the given order."""
    asked = [each.partition(";") for each in request.headers.get("accept-encoding", "").split(",")]
    taken = {
        name.strip().lower() for name, _, quality in asked if quality.replace(" ", "") not in {"q=0", "q=0.0"}
    }
    return [coding for coding in codings if coding in taken]
