"""Laurels in process: every operation, over the embedded servers or over those that URLs name."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Self, TypedDict, Unpack

from laurels import embedded
from laurels.archive.boards import BoardStore
from laurels.archive.engine import open_archive
from laurels.archive.keys import KeyStore
from laurels.archive.migrate import migrate
from laurels.boards.catalog import Catalog
from laurels.boards.define import Definer
from laurels.boards.definition import BoardDefinition, parse_definition
from laurels.boards.keys import BoardRef
from laurels.boards.ranks import Reader, Stretch, Where
from laurels.boards.retention import Retention
from laurels.boards.rolling import Rolling
from laurels.boards.submission import Submission
from laurels.boards.submit import Submitter
from laurels.clock import system_clock
from laurels.settings import load_settings
from laurels.valkey.client import Valkey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime
    from pathlib import Path

    from laurels.archive.boards import StoredBoard
    from laurels.boards.answers import Among, Distribution, Page, Percentile, Standing, WindowInfo
    from laurels.boards.ordering import Score
    from laurels.boards.ranks import Start
    from laurels.boards.submission import BatchResult, Submitted
    from laurels.clock import Clock
    from laurels.errors import InvalidInput


class Options(TypedDict, total=False):
    """How to open a `Laurels`; what is left out comes from the settings."""

    data_dir: str | Path | None
    """Where the embedded servers keep their data."""
    valkey_url: str | None
    postgres_url: str | None
    join: bool
    """Whether to share the servers that another process runs on the same data folder (default), or refuse."""
    clock: Clock
    """Where «now» comes from."""
    say: Callable[[str], None]
    """Hears what a long start is doing."""


class InWindow(TypedDict, total=False):
    """Which window a question is about: the board's first, its current slot and everybody, unless said."""

    period: str | None
    slot: str | None
    group: str | None


class Carried(TypedDict, total=False):
    """What a submission may carry besides member and score."""

    at: datetime | None
    groups: dict[str, str] | None
    id: str | None
    op: str | None
    metadata: dict[str, Any] | None


class Paging(InWindow, total=False):
    """Which stretch of the window."""

    limit: int
    start: Start
    cursor: str | None
    rank: int | None
    change: bool


class Laurels:
    """A leaderboard engine, async. Boards are named `project/board`.

    With no URLs, in the arguments or in the settings, it starts Valkey and PostgreSQL itself, or joins those
    that another Laurels runs on the same data folder.

    >>> async def play():
    ...     async with Laurels() as laurels:
    ...         await laurels.define("examples/async", {"order": "asc", "ties": "earliest"})
    ...         for member, seconds in [("ada", 61.5), ("bob", 59.25), ("eve", 61.5)]:
    ...             await laurels.submit("examples/async", member, seconds)
    ...         page = await laurels.page("examples/async")
    ...         await laurels.drop("examples/async")
    ...         return [(entry.rank, entry.member) for entry in page.entries]
    >>> asyncio.run(play())
    [(1, 'bob'), (2, 'ada'), (3, 'eve')]
    """

    valkey: Valkey
    keys: KeyStore
    store: BoardStore

    def __init__(self, **options: Unpack[Options]) -> None:
        self.settings = load_settings(
            data_dir=options.get("data_dir"),
            valkey_url=options.get("valkey_url"),
            postgres_url=options.get("postgres_url"),
        )
        self.clock = options.get("clock", system_clock)
        self._join = options.get("join", True)
        self._say = options.get("say", lambda _: None)
        self._servers: embedded.EmbeddedServers | None = None

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Starts or joins the servers, and brings the schema and the functions up to date."""
        valkey_url, postgres_url = await asyncio.to_thread(self._endpoints)
        try:
            await asyncio.to_thread(migrate, postgres_url)
            self.valkey = Valkey(valkey_url)
            self.archive = open_archive(postgres_url)
            await self.valkey.load_functions()
        except BaseException:
            await self._stop_servers()
            raise
        self.keys = KeyStore(self.archive)
        self.store = BoardStore(self.archive)
        self._catalog = Catalog(self.valkey, self.store)
        self._rolling = Rolling(self.valkey, self._catalog, self.clock)
        self._retention = Retention(self.valkey, self._catalog, self.clock)
        self._definer = Definer(self._catalog, self.store, self._retention, cluster=self.valkey.is_cluster)
        self._submitter = Submitter(self.valkey, self._catalog, self._rolling, self.clock)
        self._reader = Reader(self.valkey, self._catalog, self._rolling, self.clock)

    async def close(self) -> None:
        await self._rolling.close()
        await self.valkey.close()
        await self.archive.close()
        await self._stop_servers()

    def _endpoints(self) -> tuple[str, str]:
        valkey_url, postgres_url = self.settings.valkey_url, self.settings.postgres_url
        if valkey_url and postgres_url:
            return valkey_url, postgres_url
        folder = self.settings.data_dir or embedded.default_data_dir()
        endpoints = embedded.attach(folder) if self._join else None
        if endpoints is None:
            self._servers = embedded.start(folder, say=self._say)
            endpoints = self._servers.endpoints
        return valkey_url or endpoints.valkey_url, postgres_url or endpoints.postgres_url

    async def _stop_servers(self) -> None:
        if self._servers:
            await asyncio.to_thread(self._servers.stop)

    async def define(
        self, board: str, definition: BoardDefinition | Mapping[str, Any] | None = None
    ) -> StoredBoard:
        """Creates the board, or changes it; a mapping is read as the JSON of the API."""
        ref = BoardRef.parse(board)
        if not isinstance(definition, BoardDefinition):
            definition = parse_definition(dict(definition or {}))
        return await self._definer.define(ref, definition)

    async def definition(self, board: str) -> BoardDefinition:
        """The definition in force, as this process knows it: asks no store about a board in use."""
        return (await self._catalog.board(BoardRef.parse(board))).definition

    async def drop(self, board: str) -> None:
        """Drops the board with everything that it holds."""
        await self._definer.drop(BoardRef.parse(board))

    async def submit(
        self, board: str, member: str, score: Score | str, **carried: Unpack[Carried]
    ) -> Submitted:
        """One score for one member, and where it leaves it in the board's first window."""
        return await self._submitter.submit(BoardRef.parse(board), Submission(member, score, **carried))

    async def submit_many(
        self,
        board: str,
        submissions: Iterable[Submission | InvalidInput],
        progress: Callable[[int], None] | None = None,
    ) -> BatchResult:
        """Many submissions in as few calls as fit; a bad one harms no other. `progress` hears of those done.

        Millions may come from a generator: only one call's worth is held at a time.
        """
        return await self._submitter.submit_many(BoardRef.parse(board), submissions, progress)

    async def page(self, board: str, **paging: Unpack[Paging]) -> Page:
        """Entries from the top (or with `start="bottom"`), behind a cursor, or from a rank on."""
        where = Where(paging.get("period"), paging.get("slot"), paging.get("group"))
        stretch = Stretch(
            limit=paging.get("limit", 100),
            start=paging.get("start", "top"),
            cursor=paging.get("cursor"),
            rank=paging.get("rank"),
            change=paging.get("change", False),
        )
        return await self._reader.page(BoardRef.parse(board), where, stretch)

    async def standing(self, board: str, member: str, **where: Unpack[InWindow]) -> Standing:
        """Where one member stands."""
        return await self._reader.standing(BoardRef.parse(board), Where(**where), member)

    async def around(
        self, board: str, member: str, above: int = 5, below: int = 5, **where: Unpack[InWindow]
    ) -> Page:
        """A member with those just above and below it."""
        return await self._reader.around(BoardRef.parse(board), Where(**where), member, above, below)

    async def among(self, board: str, members: Iterable[str], **where: Unpack[InWindow]) -> Among:
        """These members ranked among themselves, each with its rank among all."""
        return await self._reader.among(BoardRef.parse(board), Where(**where), list(members))

    async def percentile(self, board: str, share: float, **where: Unpack[InWindow]) -> Percentile:
        """The score that this share of the entries are no better than."""
        return await self._reader.percentile(BoardRef.parse(board), Where(**where), share)

    async def distribution(self, board: str, buckets: int = 20, **where: Unpack[InWindow]) -> Distribution:
        """How many entries have which scores."""
        return await self._reader.distribution(BoardRef.parse(board), Where(**where), buckets)

    async def windows(
        self, board: str, *, period: str | None = None, group: str | None = None, limit: int = 100
    ) -> list[WindowInfo]:
        """The windows that can be asked for, newest first."""
        return await self._retention.windows(BoardRef.parse(board), period, group, limit)

    async def remove(self, board: str, member: str) -> bool:
        """Takes a member out of every live window and group; whether it was in any."""
        return await self._retention.remove(BoardRef.parse(board), member)
