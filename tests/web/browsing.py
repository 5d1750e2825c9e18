"""What the tests of the web are written with."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from playwright.async_api import BrowserContext, ConsoleMessage, Page, Request

ROOT = Path(__file__).parents[2]
AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
SCROLLS_SIDEWAYS = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


class Open(Protocol):
    def __call__(self, path: str = "", **options: Any) -> Awaitable[Page]: ...  # noqa: ANN401  # Playwright's own


@dataclass
class Watch:
    """What a page did that no page should, but for what the test expects of it."""

    expected: list[str] = field(default_factory=list[str])
    """Parts of errors that belong to the test, such as `status of 404`."""
    seen: list[str] = field(default_factory=list[str])

    def over(self, context: BrowserContext) -> None:
        context.on("console", self._hear)
        context.on("weberror", lambda error: self.seen.append(f"thrown: {error.error}"))
        context.on("request", self._follow)

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.seen.append(f"{message.type}: {message.text} ({message.location['url']})")

    def _follow(self, request: Request) -> None:
        if not request.url.startswith(("http://127.0.0.1:", "data:", "blob:", "about:")):
            self.seen.append(f"asked another machine: {request.url}")

    @property
    def complaints(self) -> list[str]:
        return [each for each in self.seen if not any(part in each for part in self.expected)]


async def violations(page: Page) -> list[str]:
    """What axe finds wrong with a page as it stands."""
    await page.evaluate(AXE.read_text())
    found = await page.evaluate(
        "axe.run({ resultTypes: ['violations'] }).then((results) => results.violations)"
    )
    return [
        f"{violation['id']}: {violation['help']}: {node['html']} ({node['failureSummary']})"
        for violation in found
        for node in violation["nodes"]
    ]


async def fits(page: Page) -> bool:
    """Whether nothing of the page stands beyond its sides."""
    return not await page.evaluate(SCROLLS_SIDEWAYS)
