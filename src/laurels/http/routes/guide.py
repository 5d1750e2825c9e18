"""Serves the guide under /guide: docs/ as a site, if the package was built with it."""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Final

from starlette.responses import RedirectResponse, Response

from laurels.errors import NotFound
from laurels.http.operation import RecordedRoute
from laurels.http.routes.pages import INDEX, File, names_of

if TYPE_CHECKING:
    from starlette.requests import Request

NOT_BUILT: Final = "the guide is not built; build it with `make docs` and start Laurels again"


def routes(folder: Path | None = None) -> list[RecordedRoute]:
    root = folder or Path(str(resources.files("laurels"))) / "guide"
    names = frozenset(names_of(root))

    @cache
    def read(name: str) -> File:
        return File.read(root, name)

    async def send_file(request: Request) -> Response:
        if not names:
            raise NotFound(NOT_BUILT)
        name = request.path_params["name"] or INDEX
        if name not in names:
            raise NotFound("the guide has no such page")
        return read(name).answer(request)

    async def redirect(request: Request) -> Response:
        # Relative, so that it works behind a proxy that serves Laurels under a path.
        return RedirectResponse("guide/") if names else await send_file(request)

    return [RecordedRoute("/guide", redirect), RecordedRoute("/guide/{name:path}", send_file)]
