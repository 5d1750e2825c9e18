"""Laurels in process: every operation, on embedded servers or on those of the URLs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Self, TypedDict, Unpack

from msgspec import UNSET, UnsetType

from laurels import embedded
from laurels.access.revocations import Revocations
from laurels.access.store.api_keys import KeyStore
from laurels.access.store.secrets import SecretStore
from laurels.activity.store.people import CampusSources, CampusStore
from laurels.activity.wiring import Activity
from laurels.arguments import following, spelled_out
from laurels.boards.catalog import Catalog
from laurels.boards.consent import parse_consent
from laurels.boards.define import Definer
from laurels.boards.define_many import BulkDefiner
from laurels.boards.drop_counts import DropCounter
from laurels.boards.drops import Drops
from laurels.boards.existing_keys import ExistingKeys
from laurels.boards.keys import BoardRef, group_text
from laurels.boards.operations import DefinitionOperations
from laurels.boards.retention import Retention
from laurels.boards.store import BoardStore
from laurels.clock import system_clock
from laurels.errors import InvalidInput
from laurels.history import member_history
from laurels.history.all_windows import AllWindows
from laurels.history.archive_operations import ArchiveOperations
from laurels.history.archived_windows import ArchivedWindows
from laurels.history.erase import Eraser
from laurels.history.export import BoardFiles
from laurels.history.maintenance import Maintenance
from laurels.history.member_export import MemberExporter
from laurels.history.operator_status import OperatorStatus
from laurels.history.recount import Recount
from laurels.history.snapshots import SnapshotTaker
from laurels.history.store.snapshots import SnapshotStore
from laurels.history.store.window_journal import WindowJournal
from laurels.history.survey import Survey
from laurels.history.whole_boards import WholeBoardOperations
from laurels.jobs.agenda import AGENDA, LOOPS
from laurels.jobs.overview import JobOverview
from laurels.jobs.runner import Runner
from laurels.journal.drain import Drain
from laurels.journal.rebuild import Rebuilder
from laurels.people.known import KnownPeople
from laurels.people.operations import Directory, PeopleOperations
from laurels.people.records import Person, Place
from laurels.people.store import RecordStore
from laurels.postgres.engine import Postgres
from laurels.postgres.migrate import migrate
from laurels.ratings.match import Match
from laurels.ratings.submit import MatchSubmitter
from laurels.ratings.systems import check_available
from laurels.scores.feeds import Feeds
from laurels.scores.idempotency import IdempotencyKeys
from laurels.scores.live import LiveViews, View
from laurels.scores.metadata import MetadataOperations, MetadataSetter
from laurels.scores.page_query import EntriesQuery, PageQuery, WindowQuery
from laurels.scores.queries import Reader
from laurels.scores.removal import Remover
from laurels.scores.rolling import Rolling
from laurels.scores.submission import Submission
from laurels.scores.submit import Submitter
from laurels.settings import load_settings
from laurels.valkey import requirements
from laurels.valkey.client import Valkey
from laurels.valkey.durability import require, sync_always
from laurels.valkey.messages import DURABILITIES
from laurels.wording import one_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from laurels.arguments import (
        AboutMatch,
        Carried,
        Entries,
        FirstPage,
        InWindow,
        Paging,
        WatchArguments,
    )
    from laurels.boards.definition import BoardDefinition
    from laurels.boards.ordering import Score
    from laurels.boards.windows import WindowInfo
    from laurels.clock import Clock
    from laurels.jobs.state import JobInfo
    from laurels.ratings.match import Matched
    from laurels.scores.results import Among, Distribution, Entry, Page, Percentile, Standing
    from laurels.scores.submission import BatchResult, Submitted
    from laurels.scores.view_diff import Update
    from laurels.scores.waiting import OnOutcome
    from laurels.valkey.messages import Durability


class Options(TypedDict, total=False):
    """How to open a `Laurels`. The settings fill in what is left out."""

    data_dir: str | Path | None
    """Where the embedded servers keep their data."""
    valkey_url: str | None
    postgres_url: str | None
    durability: Durability | None
    """What answers wait for, unless a call names another durability."""
    join: bool
    """Whether to share the servers that another process runs on the same data folder (default), or refuse."""
    jobs: bool
    """Whether this process does background work (`laurels worker`) too. By default it does if it started the
    embedded servers.
    """
    clock: Clock
    """Says what time it is."""
    say: Callable[[str], None]
    """Called with each step of a long start."""


@spelled_out
class Laurels(
    DefinitionOperations, WholeBoardOperations, ArchiveOperations, MetadataOperations, PeopleOperations
):
    """A leaderboard engine, async. Boards are named `project/board`.

    With no URLs, in the arguments or in the settings, it starts Valkey and PostgreSQL itself, or joins those
    that another Laurels runs on the same data folder.

    >>> async def play():
    ...     async with Laurels() as laurels:
    ...         await laurels.define("examples/async", {"order": "asc", "ties": "earliest"})
    ...         for member, seconds in [("ada", 61.5), ("bob", 59.25), ("eve", 61.5)]:
    ...             await laurels.submit("examples/async", member, seconds)
    ...         page = await laurels.page("examples/async")
    ...         await laurels.drop("examples/async", allow_drop="all")
    ...         return [(entry.rank, entry.member) for entry in page.entries]
    >>> asyncio.run(play())
    [(1, 'bob'), (2, 'ada'), (3, 'eve')]
    """

    valkey: Valkey
    keys: KeyStore
    secrets: SecretStore
    revocations: Revocations
    store: BoardStore
    check_available = staticmethod(check_available)

    def __init__(self, **options: Unpack[Options]) -> None:
        self.settings = load_settings(
            data_dir=options.get("data_dir"),
            valkey_url=options.get("valkey_url"),
            postgres_url=options.get("postgres_url"),
            durability=options.get("durability"),
        )
        self.clock = options.get("clock", system_clock)
        self._join = options.get("join", True)
        self._say = options.get("say", lambda _: None)
        self._jobs = options.get("jobs")
        self._servers: embedded.EmbeddedServers | None = None
        self._working: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Starts or joins the servers, and brings the schema and the functions up to date."""
        await self._open_stores()
        self.revocations = Revocations(self.valkey)
        self.keys = KeyStore(self.postgres, self.revocations.announce)
        self.secrets = SecretStore(self.postgres, self.revocations.announce)
        self.store = BoardStore(self.postgres)
        self._catalog = Catalog(self.valkey, self.store)
        self._rolling = Rolling(self.valkey, self._catalog, self.clock)
        self._retention = Retention(self.valkey, self._catalog, self.clock)
        self._remover = Remover(self.valkey, self._catalog, self._retention, self.clock)
        self.metadata = MetadataSetter(self.valkey, self._catalog, self._retention, self.clock)
        self.feeds = Feeds(self.valkey, self._catalog, self._rolling, self.clock, self.settings.durability)
        self.drain = Drain(self.valkey, self.postgres, self.store, self.feeds, self.clock)
        self.drops = Drops(
            self.valkey, self._catalog, self.store, self._retention, self.drain, self.settings.durability
        )
        kept = SnapshotStore(self.postgres)
        self.definer = Definer(
            self._catalog,
            self.store,
            self.drops,
            DropCounter(self._retention, kept.counts, self.clock),
            ExistingKeys(self.valkey, self._catalog, self._retention, self.clock),
        )
        self.bulk_definer = BulkDefiner(self.definer, self._catalog, self.store, self.drops)
        self._submitter = Submitter(self.valkey, self._catalog, self._rolling, self.feeds, self.clock)
        self._matches = MatchSubmitter(self.valkey, self._catalog, self._rolling, self.clock)
        self.idempotency_keys = IdempotencyKeys(self.valkey, self._catalog)
        journal = WindowJournal(self.postgres)
        self.archived_windows = ArchivedWindows(self._catalog, self.store, kept, Recount(journal), self.clock)
        self.member_history = member_history.MemberHistory(
            self.valkey, self._retention, self._rolling, self.archived_windows, journal
        )
        self._reader = Reader(self.valkey, self._catalog, self._rolling, self.clock, self.archived_windows)
        people, places = RecordStore(self.postgres, Person), RecordStore(self.postgres, Place)
        self.known_people = KnownPeople(self.valkey, people)
        self.people_directory = Directory(Person, people, self.known_people.changed)
        self.places_directory = Directory(Place, places)
        self.all_windows = AllWindows(self._reader, self.archived_windows, self.known_people)
        self.live = LiveViews(self.valkey, self._catalog, self._reader, self.known_people, self.clock)
        kept_boards = (self.store, kept, self._retention, self._rolling, self.clock)
        self.snapshot_taker = SnapshotTaker(self.valkey, self._catalog, *kept_boards)
        self.maintenance = Maintenance(self.valkey, self._catalog, *kept_boards)
        self.survey = Survey(self.valkey, self.store)
        over_all = (self.postgres, self._catalog, self.store, self._retention, self.drain, self.clock)
        self.rebuilder = Rebuilder(self.valkey, *over_all)
        self.board_files = BoardFiles(
            self.valkey, self._catalog, self.definer, self._retention, self._rolling, self.clock
        )
        self.operator_status = OperatorStatus(
            self.valkey, self.postgres, self.store, self.drain.journal_streams
        )
        boards = (
            self._catalog,
            self.definer.acting_for("campus"),
            self._submitter.acting_for("campus"),
        )
        self.index_definer = self.definer.acting_for("index")
        people_of_campuses = (people, places, self.settings.campus_timezone)
        self.activity = Activity(
            self.valkey, self._campuses, boards, self._reader, people_of_campuses, self.clock
        )
        self.known_people.sources["campus"] = self.activity.people
        self.eraser = Eraser(
            self.valkey, *over_all, {"campus": self.activity.eraser}, self.people_directory.remove
        )
        self.member_exporter = MemberExporter(
            self.valkey, *over_all[:5], people, {"campus": self.activity.exporter}
        )
        self._overview = JobOverview(self.postgres, AGENDA, self.clock)
        if self._servers is not None if self._jobs is None else self._jobs:
            self._working = asyncio.create_task(Runner(self, AGENDA, LOOPS).run(asyncio.Event()))

    async def _open_stores(self) -> None:
        endpoints = await asyncio.to_thread(self._endpoints)
        try:
            await asyncio.to_thread(migrate, endpoints.postgres_url)
            self.valkey = Valkey(
                endpoints.valkey_url,
                replicas=self.settings.replicas,
                durability=self.settings.durability,
            )
            self.postgres = Postgres(endpoints.postgres_url)
            sources = CampusSources(
                self.settings.campus_users, self.settings.campus_campuses, self.settings.campus_timezone
            )
            self._campuses = CampusStore(self.postgres, sources)
            await self._campuses.require()
            await requirements.require(self.valkey, self.settings.durability)
            await self._require_durability()
        except BaseException:
            for store in filter(None, (vars(self).get("valkey"), vars(self).get("postgres"))):
                await store.close()
            await self._stop_servers()
            raise

    async def _require_durability(self) -> None:
        wanted = self.settings.durability
        if wanted != "fast" and self.settings.valkey_url is None:
            await sync_always(self.valkey)
        await require(self.valkey, wanted, self.settings.replicas)

    async def close(self) -> None:
        await self.live.close()
        if self._working:
            self._working.cancel()
            await asyncio.gather(self._working, return_exceptions=True)
        await self._rolling.close()
        await self.revocations.close()
        await self.valkey.close()
        await self.postgres.close()
        await self._stop_servers()

    def _endpoints(self) -> embedded.Endpoints:
        external = embedded.ExternalServers(self.settings.valkey_url, self.settings.postgres_url)
        if external.endpoints:
            return external.endpoints
        folder = self.settings.data_dir or embedded.default_data_dir()
        endpoints = embedded.attach(folder, external) if self._join else None
        if endpoints is None:
            self._servers = embedded.start(folder, external=external, say=self._say)
            endpoints = self._servers.endpoints
        return endpoints

    async def _stop_servers(self) -> None:
        if self._servers:
            await asyncio.to_thread(self._servers.stop)

    async def definition(self, board: str) -> BoardDefinition:
        """The definition in force, as this process knows it: a board in use needs no call to a store."""
        return (await self._catalog.board(BoardRef.parse(board))).definition

    def remembered(self, board: str) -> BoardDefinition | None:
        """Like `definition`, without waiting. None for a board that this process does not know yet."""
        known = self._catalog.known(BoardRef.parse(board))
        return known and known.definition

    async def definition_in_force(self, board: str) -> BoardDefinition:
        """The definition in force, even if another process has just changed it."""
        return (await self._catalog.in_force(BoardRef.parse(board))).definition

    async def drop(self, board: str, *, allow_drop: str | Iterable[str] = ()) -> None:
        """Drops the board. Raises `DropNotAllowed` if it holds entries, unless `allow_drop` is `"all"`."""
        await self.definer.drop(BoardRef.parse(board), allow_drop=parse_consent(allow_drop))

    async def submit(
        self,
        board: str,
        member: str,
        score: Score | str,
        *,
        durability: Durability | None = None,
        **carried: Unpack[Carried],
    ) -> Submitted:
        """Submits one score for one member, and returns its rank in the board's first window."""
        return await self.send(board, Submission.of(member, score, carried), durability)

    async def send(self, board: str, given: Submission, durability: Durability | None = None) -> Submitted:
        """Like `submit`, with a `Submission`."""
        return await self._submitter.submit(BoardRef.parse(board), given, self._durability(durability))

    def prepare(self, board: str, given: Submission) -> Callable[[OnOutcome], None] | None:
        """Like `send`, without waiting: returns a function that submits, and later passes on the result. None
        if this process does not know enough to check the submission.
        """
        return self._submitter.prepare(BoardRef.parse(board), given, self.settings.durability)

    async def submit_many(
        self,
        board: str,
        submissions: Iterable[Submission | InvalidInput],
        progress: Callable[[int], None] | None = None,
        *,
        durability: Durability | None = None,
    ) -> BatchResult:
        """Submits many; a refused one does not affect the others. Calls `progress` with the number done.

        A generator may yield millions: memory holds one call to Valkey at a time.
        """
        return await self._submitter.submit_many(
            BoardRef.parse(board), submissions, progress, self._durability(durability)
        )

    async def match(
        self,
        board: str,
        players: Sequence[str],
        winner: str | UnsetType | None = UNSET,
        *,
        durability: Durability | None = None,
        **about: Unpack[AboutMatch],
    ) -> Matched:
        """Submits a rated game, and returns its players' new ratings and ranks. `winner` None is a draw."""
        return await self._matches.play(
            BoardRef.parse(board), Match.of(players, winner, about), self._durability(durability)
        )

    async def confirm(self, board: str, durability: Durability | None = None) -> None:
        """Returns when everything that was submitted to the board has this durability."""
        if (wanted := self._durability(durability)) != "fast":
            await self._submitter.confirm(BoardRef.parse(board), wanted)

    def _durability(self, asked: Durability | None) -> Durability:
        if asked is None:
            return self.settings.durability
        if asked not in DURABILITIES:
            raise InvalidInput.at("durability", one_of(DURABILITIES, asked))
        return asked

    async def page(self, board: str, **paging: Unpack[Paging]) -> Page:
        """Entries from the top (or with `start="bottom"`), after a cursor, or from a rank on."""
        return await self.all_windows.page(BoardRef.parse(board), PageQuery.of(paging))

    async def pages(self, board: str, **first: Unpack[FirstPage]) -> AsyncGenerator[Page]:
        """The pages of a window. Each begins where the previous one ended, even if entries change."""
        page = await self.page(board, **first)
        yield page
        while page.next is not None:
            page = await self.page(board, **following(first, page.next))
            yield page

    async def entries(self, board: str, **first: Unpack[FirstPage]) -> AsyncGenerator[Entry]:
        """Every entry of a window, read page by page."""
        async for page in self.pages(board, **first):
            for entry in page.entries:
                yield entry

    async def watch(self, board: str, **watching: Unpack[WatchArguments]) -> AsyncGenerator[Update]:
        """Watches the first entries of a window: the first update is a `Snapshot`, the others are changes.
        `last_id` is the id of an update to continue after.
        """
        member, last_id = watching.pop("member", None), watching.pop("last_id", None)
        view = View(BoardRef.parse(board), PageQuery.of(watching), member)
        follower = await self.live.follow(view, last_id)
        try:
            async for update in follower:
                yield update
        finally:
            follower.leave()

    async def standing(self, board: str, member: str, **where: Unpack[Entries]) -> Standing:
        """One member's standing, also in a window that only the archive has."""
        return await self.all_windows.standing(BoardRef.parse(board), EntriesQuery.of(where), member)

    async def around(
        self, board: str, member: str, above: int = 5, below: int = 5, **where: Unpack[Entries]
    ) -> Page:
        """A member with those just above and below it."""
        ref, query = BoardRef.parse(board), EntriesQuery.of(where)
        return await self.all_windows.around(ref, query, member, above, below)

    async def among(self, board: str, members: Iterable[str], **where: Unpack[Entries]) -> Among:
        """These members ranked among themselves, each with its rank among all."""
        return await self.all_windows.among(BoardRef.parse(board), EntriesQuery.of(where), list(members))

    async def percentile(self, board: str, share: float, **where: Unpack[InWindow]) -> Percentile:
        """The score that this share of the entries is no better than."""
        return await self._reader.percentile(BoardRef.parse(board), WindowQuery.of(where), share)

    async def distribution(self, board: str, buckets: int = 20, **where: Unpack[InWindow]) -> Distribution:
        """A histogram of the scores."""
        return await self._reader.distribution(BoardRef.parse(board), WindowQuery.of(where), buckets)

    async def jobs(self) -> list[JobInfo]:
        """The background jobs and their state."""
        return await self._overview.jobs()

    async def request_job(self, name: str) -> JobInfo:
        """Requests an extra run of a job; a worker begins it within seconds."""
        return await self._overview.request(name)

    async def windows(
        self,
        board: str,
        *,
        period: str | None = None,
        group: str | Mapping[str, str] | None = None,
        limit: int = 100,
    ) -> list[WindowInfo]:
        """The windows that can be read, newest first."""
        return await self._retention.windows(BoardRef.parse(board), period, group_text(group), limit)

    async def archived(self, board: str) -> None:
        """Returns when everything that was submitted to the board is in PostgreSQL; drains it if needed."""
        await self.drain.finish(BoardRef.parse(board))

    async def journal_drained(self) -> None:
        """Like `archived`, for every board."""
        await self.drain.finish()

    async def remove(self, board: str, member: str, *, durability: Durability | None = None) -> bool:
        """Removes a member from every live window and group; returns whether it was in any."""
        return await self._remover.remove(BoardRef.parse(board), member, self._durability(durability))
