"""What a browser opens: the page, if this package was built with one, and the API's documentation."""

from __future__ import annotations

import base64
import re
from hashlib import blake2b, sha256
from importlib import resources
from mimetypes import guess_type
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fastapi.openapi.docs import get_swagger_ui_html
from starlette.responses import JSONResponse, Response

from laurels.api.answers import is_known
from laurels.api.operation import ThinRoute
from laurels.api.problems import BY_KIND, EXPLANATIONS, type_of
from laurels.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request

INDEX: Final = "index.html"
# Where the build puts files whose names change with their contents.
HASHED: Final = "assets/"

LINKS: Final = {
    "docs": "/docs",
    "openapi": "/openapi.json",
    "projects": "/v1/projects",
    "health": "/healthz",
    "readiness": "/readyz",
    "metrics": "/metrics",
}

POLICY: Final = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
# Where FastAPI's documentation page has its script and style from.
DOCUMENTATION_SOURCE: Final = "https://cdn.jsdelivr.net"


def routes(folder: Path | None = None) -> list[ThinRoute]:
    """A route for each file of the folder, its index at `/`; without one, a list of links there."""
    root = folder or Path(str(resources.files("laurels"))) / "web"
    always = [
        ThinRoute("/docs", _documentation()),
        ThinRoute("/openapi.json", send_document),
        ThinRoute("/problems/{kind}", explain_problem),
    ]
    if not (root / INDEX).is_file():
        return [*always, ThinRoute("/", list_links)]
    files = sorted(path for path in root.rglob("*") if path.is_file() and path.suffix != ".py")
    names = [path.relative_to(root).as_posix() for path in files]
    return [
        *always,
        *(ThinRoute(f"/{name}", _file(path, name)) for path, name in zip(files, names, strict=True)),
        ThinRoute("/", _file(root / INDEX, INDEX)),
    ]


async def list_links(_: Request) -> Response:
    return JSONResponse(LINKS)


async def send_document(request: Request) -> Response:
    return JSONResponse(request.app.openapi())


async def explain_problem(request: Request) -> Response:
    """What a problem's `type` leads to."""
    kind = BY_KIND.get(request.path_params["kind"])
    if kind is None:
        raise NotFound(f"there is no such kind of problem; known: {', '.join(BY_KIND)}")
    about = {"type": type_of(kind), "title": kind.title, "status": kind.status}
    return JSONResponse({**about, "explanation": EXPLANATIONS[kind]})


def _file(path: Path, name: str) -> Callable[[Request], Awaitable[Response]]:
    content = path.read_bytes()
    tag = f'"{blake2b(content, digest_size=16).hexdigest()}"'
    headers = {
        "ETag": tag,
        "Cache-Control": "public, max-age=31536000, immutable" if name.startswith(HASHED) else "no-cache",
        "Content-Security-Policy": POLICY,
    }
    media_type = guess_type(name)[0] or "application/octet-stream"

    async def send_file(request: Request) -> Response:
        if is_known(request, tag):
            return Response(status_code=304, headers=headers)
        return Response(content, headers=headers, media_type=media_type)

    return send_file


def _documentation() -> Callable[[Request], Awaitable[Response]]:
    # Relative, so that it holds behind a proxy that serves us under a path of its own.
    html = get_swagger_ui_html(openapi_url="openapi.json", title="Laurels", swagger_favicon_url="data:,").body
    scripts = re.findall(rb"<script>(.*?)</script>", bytes(html), re.DOTALL)
    allowed = [f"'sha256-{base64.b64encode(sha256(script).digest()).decode()}'" for script in scripts]
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src {DOCUMENTATION_SOURCE} {' '.join(allowed)}",
            f"style-src {DOCUMENTATION_SOURCE} 'unsafe-inline'",
            "img-src data:",
            "connect-src 'self'",
            "frame-ancestors 'none'",
        )
    )

    async def send_documentation(_: Request) -> Response:
        return Response(html, headers={"Content-Security-Policy": policy}, media_type="text/html")

    return send_documentation
