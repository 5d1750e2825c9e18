"""Boards to look at, made through the API of the site."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import httpx

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable

    from cli_processes import Served
    from playwright.async_api import Locator, Page

CHUNK = 20_000

_numbers = count(1)


@dataclass(frozen=True)
class Ranked:
    """A board in a project of its own."""

    client: httpx.AsyncClient
    project: str
    name: str
    key: str

    @property
    def path(self) -> str:
        return f"/v1/projects/{self.project}/boards/{self.name}"

    def view(self, **query: str) -> str:
        """Where the page shows it; the key comes along."""
        asked = f"?{urlencode(query)}" if query else ""
        return f"boards/{self.project}/{self.name}{asked}#key={self.key}"

    def url(self, **query: str) -> str:
        return str(self.client.base_url.join(self.view(**query)))

    async def ask(self, method: str, path: str = "", **options: Any) -> Any:  # noqa: ANN401  # whatever is answered
        answer = await self.client.request(method, self.path + path, **options)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    async def submit(self, member: str, score: float | str, **more: Any) -> None:  # noqa: ANN401  # of a submission
        await self.ask("POST", "/scores", json={"member": member, "score": score, **more})

    async def submit_many(self, submissions: Iterable[dict[str, Any]]) -> None:
        lines = [json.dumps(each) for each in submissions]
        for start in range(0, len(lines), CHUNK):
            content = "\n".join(lines[start : start + CHUNK]).encode()
            headers = {"Content-Type": "application/x-ndjson"}
            answer = await self.ask("POST", "/scores/batch", content=content, headers=headers)
            assert not answer["rejected"], answer["rejected"][0]


@asynccontextmanager
async def new_board(site: Served, definition: dict[str, Any], name: str = "arcade") -> AsyncGenerator[Ranked]:
    key = site.welcome["key"]
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(base_url=site.url, headers=headers, timeout=60) as client:
        board = Ranked(client, f"web-{next(_numbers)}", name, key)
        await board.ask("PUT", json=definition)
        yield board


def days_ago(days: int) -> str:
    return (datetime.now(UTC) - timedelta(days=days)).isoformat()


async def ranking(page: Page) -> list[tuple[str, str, str]]:
    """The rows that the table shows: rank, member and score."""
    found: list[list[str]] = await page.locator("tr[data-member]").evaluate_all(
        "rows => rows.map(row => [row.cells[0].innerText, row.dataset.member, row.cells[3].innerText])"
    )
    return [(rank.strip(), member, score.strip()) for rank, member, score in found]


def row_of(page: Page, member: str) -> Locator:
    return page.locator(f'tr[data-member="{member}"]')
