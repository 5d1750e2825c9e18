"""An error as a small HTML page, for people who open an address in a browser.

The page has no script and loads only the icon. Its links are relative, so they work behind a proxy that
serves Laurels under a path.
"""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from html import escape
from typing import TYPE_CHECKING, Final

from starlette.responses import HTMLResponse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from laurels.http.problems import Problem

# The colours and type of web/src/theme/tokens.css.
STYLE: Final = """
:root { color-scheme: light dark; }
body {
  margin: 0; padding: clamp(1rem, 8vw, 6rem); font: 1rem/1.5 ui-sans-serif, system-ui, sans-serif;
  background: light-dark(#f9f8f4, #0e1311); color: light-dark(#1c2520, #e8ede9);
}
main { max-width: 40rem; overflow-wrap: anywhere; }
h1 { margin: 0 0 1rem; font: 600 2rem/1.2 ui-serif, Georgia, serif; }
a { color: light-dark(#286445, #86c6a0); }
small { color: light-dark(#56625b, #a3afa8); }
"""
_STYLE_HASH: Final = b64encode(sha256(STYLE.encode()).digest()).decode()
POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; img-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)

_PAGE: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{status} {title} - Laurels</title>
<link rel="icon" href="{home}mark.svg" type="image/svg+xml">
<style>{style}</style>
</head>
<body>
<main>
<h1>{title}</h1>
<p>{detail}</p>
<p><a href="{home}">Go to the start page</a></p>
<p><small>Status {status}, request {request_id}</small></p>
</main>
</body>
</html>
"""


def error_page(problem: Problem, headers: Mapping[str, str]) -> HTMLResponse:
    home = "../" * (problem.instance.count("/") - 1) or "./"
    page = _PAGE.format(
        status=problem.status,
        title=escape(problem.title),
        detail=escape(problem.detail),
        request_id=escape(problem.request_id),
        home=home,
        style=STYLE,
    )
    return HTMLResponse(page, problem.status, headers={**headers, "Content-Security-Policy": POLICY})


def prefers_html(accept: str) -> bool:
    """Whether an `Accept` header rates HTML above JSON; a tie, as `*/*`, is not enough."""
    return _quality(accept, "text/html") > max(
        _quality(accept, "application/problem+json"), _quality(accept, "application/json")
    )


def _quality(accept: str, media_type: str) -> float:
    """The quality of a media type, by the most specific range that matches it (RFC 9110, 12.5.1)."""
    ranges = ("*/*", f"{media_type.partition('/')[0]}/*", media_type)
    found = (-1, 0.0)
    for given in accept.split(","):
        name, *parameters = (part.strip().lower() for part in given.split(";"))
        if name in ranges:
            found = max(found, (ranges.index(name), _q_of(parameters)))
    return found[1]


def _q_of(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                quality = float(value)
            except ValueError:
                return 0.0
            return quality if 0 <= quality <= 1 else 0.0
    return 1.0
