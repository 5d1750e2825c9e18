"""Every operation as a flow: the request, and what its answer means.

Names, arguments and results are those of `laurels.Laurels`. A new operation is a method here, and a line in
each of the two clients (`sync_client`, `async_client`).
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Mapping
from dataclasses import replace
from datetime import datetime  # noqa: TC003  # msgspec reads the annotations
from typing import TYPE_CHECKING, Any, Final, TypeVar, Unpack
from uuid import uuid4

import msgspec
from msgspec import UNSET, UnsetType

from laurels.arguments import following
from laurels.boards.defined import Defined
from laurels.boards.definition import BoardDefinition, StoredBoard
from laurels.boards.keys import BoardRef
from laurels.boards.preview import Preview
from laurels.boards.windows import WindowInfo  # noqa: TC001  # msgspec reads the annotations
from laurels.client import lines, live
from laurels.client.decoding import decoded, parsed
from laurels.client.errors import error_of, problem_of
from laurels.client.paths import JSON, as_json, member_segment, project_path, segment, with_query
from laurels.client.people import PeopleFlows
from laurels.client.steps import Give, Lost, Request, Send
from laurels.errors import InvalidInput, NotFound
from laurels.history.records import Erased, History, MemberExport, SnapshotList, SnapshotPage
from laurels.jobs.state import JobInfo, JobState
from laurels.ratings.match import Match, Matched
from laurels.scores.results import Among, Distribution, Entry, Page, Percentile, Standing
from laurels.scores.submission import BatchResult, MetadataSet, Submission, Submitted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from laurels.arguments import (
        AboutMatch,
        ArchiveArguments,
        Batching,
        Carried,
        Entries,
        FirstPage,
        InWindow,
        Paging,
        Selection,
        WatchArguments,
    )
    from laurels.boards.ordering import Score
    from laurels.client.call import Caller
    from laurels.client.paths import Query
    from laurels.client.steps import Flow, Reply, Stream
    from laurels.scores.view_diff import Update
    from laurels.valkey.messages import Durability

Answer = TypeVar("Answer")

# A request that defines boards is answered within some seconds.
BOARDS_A_REQUEST: Final = 1000


class Health(msgspec.Struct, frozen=True):
    """Whether the server is ready, and the result of each of its checks."""

    ready: bool
    checks: dict[str, str]


class _Boards(msgspec.Struct, frozen=True):
    boards: list[StoredBoard]


class _Definitions(msgspec.Struct, frozen=True):
    boards: list[Defined]


class _Projects(msgspec.Struct, frozen=True):
    projects: list[str]


class _Windows(msgspec.Struct, frozen=True):
    windows: list[WindowInfo]


class _Readiness(msgspec.Struct, frozen=True):
    checks: dict[str, str]


class _Jobs(msgspec.Struct, frozen=True):
    jobs: list[msgspec.Raw]


class _Due(msgspec.Struct, frozen=True):
    next_due: datetime | None


class ClientOperations(PeopleFlows):
    def __init__(self, caller: Caller, project: str | None = None) -> None:
        super().__init__(caller)
        self._project = project

    # Boards

    def define(
        self,
        board: str,
        definition: BoardDefinition | Mapping[str, Any] | None = None,
        *,
        allow_drop: str | Iterable[str] = (),
    ) -> Flow[StoredBoard]:
        """Creates the board or changes it; a mapping is the JSON of the API. `allow_drop` names the windows
        that may lose entries (`"weekly,monthly"`); raises `DropNotAllowed` if others would.
        """
        path = with_query(self._path(board), _consent(allow_drop))
        reply = yield from self._caller.call(Request("PUT", path, _encoded_definition(definition), JSON))
        return replace(decoded(reply, StoredBoard), created=reply.status == 201)

    def define_many(
        self,
        project: str,
        boards: Mapping[str, BoardDefinition | Mapping[str, Any]],
        *,
        allow_drop: Mapping[str, str | Iterable[str]] | None = None,
    ) -> Flow[list[Defined]]:
        """Defines boards of a project, by name. A refused one stops no other: the results, in the same order,
        say what became of each. `allow_drop`: for each board, the windows that may lose entries.
        """
        path, results = f"{project_path(project)}/boards/batch", list[Defined]()
        consents = {name: _consent(names) for name, names in (allow_drop or {}).items()}
        for encoded in _board_lines(boards, consents):
            reply = yield from self._caller.call(
                Request("POST", path, encoded, {"Content-Type": lines.LINES})
            )
            results += decoded(reply, _Definitions).boards
        return results

    def preview(self, board: str, definition: BoardDefinition | Mapping[str, Any]) -> Flow[Preview]:
        """What `define` would change, and the windows and keys that it would make. Changes nothing."""
        request = Request("POST", f"{self._path(board)}/preview", _encoded_definition(definition), JSON)
        return decoded((yield from self._caller.call(request)), Preview)

    def definition(self, board: str) -> Flow[BoardDefinition]:
        """The definition in force."""
        return (yield from self._read(self._path(board), StoredBoard)).definition

    def drop(self, board: str, *, allow_drop: str | Iterable[str] = ()) -> Flow[None]:
        """Drops the board. Raises `DropNotAllowed` if it holds entries, unless `allow_drop` is `"all"`."""
        path = with_query(self._path(board), _consent(allow_drop))
        yield from self._caller.call(Request("DELETE", path), once_gone=True)

    def projects(self, *, limit: int | None = None, cursor: str | None = None) -> Flow[list[str]]:
        """The projects that have boards and that the key may see, by name. With a `limit`, so many: `cursor`
        is the last name of the list before.
        """
        path = with_query("/v1/projects", {"limit": limit, "cursor": cursor})
        return (yield from self._read(path, _Projects)).projects

    def boards(
        self, project: str | None = None, *, limit: int | None = None, cursor: str | None = None
    ) -> Flow[list[StoredBoard]]:
        """The boards of a project, by name; by default of the client's own. With a `limit`, so many: `cursor`
        is the name of the last board of the list before.
        """
        name = project or self._project
        if not name:
            raise InvalidInput.at("project", "name one, or give the client a project")
        path = with_query(f"{project_path(name)}/boards", {"limit": limit, "cursor": cursor})
        return (yield from self._read(path, _Boards)).boards

    # Scores

    def submit(
        self,
        board: str,
        member: str,
        score: Score | str,
        *,
        durability: Durability | None = None,
        **carried: Unpack[Carried],
    ) -> Flow[Submitted]:
        """Submits one score for one member, and says where it stands in the board's first window.

        It has an id before it is first sent, so it counts once, however often the client tries. If it counted
        but the answer was lost, the next answer says that it was not `applied`.
        """
        given = Submission.of(member, score, carried)
        if given.id is None:
            given.id = uuid4().hex
        request = Request("POST", f"{self._path(board)}/scores", as_json("submission", given))
        return (yield from self._changed(request, given.id, durability, Submitted))

    def match(
        self,
        board: str,
        players: Sequence[str],
        winner: str | UnsetType | None = UNSET,
        *,
        durability: Durability | None = None,
        **about: Unpack[AboutMatch],
    ) -> Flow[Matched]:
        """Submits a rated game, and says where its players stand. `winner` None is a draw.

        It has an id before it is first sent, so it counts once, however often the client tries.
        """
        given = Match.of(players, winner, about)
        if given.id is None:
            given.id = uuid4().hex
        request = Request("POST", f"{self._path(board)}/matches", as_json("match", given))
        return (yield from self._changed(request, given.id, durability, Matched))

    def submit_many(
        self,
        board: str,
        submissions: Iterable[Submission | InvalidInput] | AsyncIterable[Submission | InvalidInput],
        progress: Callable[[int], None] | None = None,
        *,
        durability: Durability | None = None,
        **how: Unpack[Batching],
    ) -> Flow[BatchResult]:
        """Submits many; a refused one does not affect the others. Calls `progress` with the number done.

        Millions may come from a generator (of `AsyncClient`, also an async one): the client sends at most
        5,000 in one request and holds no more. Each has an id before it is first sent, so none counts twice.
        """
        items = aiter(submissions) if isinstance(submissions, AsyncIterable) else iter(submissions)
        batch_id = how.get("id") or uuid4().hex
        batch = lines.Batch(items, batch_id, how.get("compress"), progress, _durable(durability))
        return lines.send(self._caller, f"{self._path(board)}/scores/batch", batch)

    # Entries

    def page(self, board: str, **paging: Unpack[Paging]) -> Flow[Page]:
        """Entries from the top (or with `start="bottom"`), after a cursor, or from a rank on."""
        query = {"from" if name == "start" else name: value for name, value in paging.items()}
        return self._read(f"{self._path(board)}/entries", Page, query)

    def pages(self, board: str, **first: Unpack[FirstPage]) -> Stream[Page]:
        """Page after page. Each begins where the one before ended, also when entries change meanwhile."""
        page = yield from self.page(board, **first)
        yield Give(page)
        while page.next is not None:
            page = yield from self.page(board, **following(first, page.next))
            yield Give(page)

    def entries(self, board: str, **first: Unpack[FirstPage]) -> Stream[Entry]:
        """Every entry of a window, read page by page."""
        page = yield from self.page(board, **first)
        yield from map(Give, page.entries)
        while page.next is not None:
            page = yield from self.page(board, **following(first, page.next))
            yield from map(Give, page.entries)

    def standing(self, board: str, member: str, **where: Unpack[Entries]) -> Flow[Standing]:
        """Where one member stands."""
        return self._read(self._member(board, member), Standing, {**where})

    def around(
        self, board: str, member: str, above: int = 5, below: int = 5, **where: Unpack[Entries]
    ) -> Flow[Page]:
        """A member with those just above and below it."""
        query = {**where, "above": above, "below": below}
        return self._read(f"{self._member(board, member)}/around", Page, query)

    def among(self, board: str, members: Iterable[str], **where: Unpack[Entries]) -> Flow[Among]:
        """These members ranked among themselves, each with its rank among all."""
        path = with_query(f"{self._path(board)}/entries/among", {**where})
        request = Request("POST", path, as_json("members", {"members": list(members)}), JSON)
        return decoded((yield from self._caller.call(request)), Among)

    def remove(self, board: str, member: str, *, durability: Durability | None = None) -> Flow[bool]:
        """Takes a member out of every live window and group; whether it was in any.

        True also if an earlier try, whose answer was lost, may have done it.
        """
        try:
            request = Request("DELETE", self._member(board, member), headers=_durable(durability))
            yield from self._caller.call(request, once_gone=True)
        except NotFound:
            yield from self.definition(board)  # raises if the board is what is missing
            return False
        return True

    def set_metadata(
        self,
        board: str,
        member: str,
        metadata: dict[str, Any] | None,
        *,
        durability: Durability | None = None,
        **selection: Unpack[Selection],
    ) -> Flow[MetadataSet]:
        """Replaces the metadata of a member's entries without a score: in every live window and group, or in
        those that `period`, `slot` and `group` select. Raises `NotFound` if there is no such entry.

        It has an id before it is first sent, so it counts once, however often the client tries. If it counted
        but the answer was lost, the next answer says that it was not `applied`.
        """
        given_id = selection.pop("id", None) or uuid4().hex
        path = with_query(self._member(board, member), {**selection})
        request = Request("PATCH", path, as_json("metadata", {"metadata": metadata, "id": given_id}))
        return (yield from self._changed(request, given_id, durability, MetadataSet))

    # Windows

    def windows(
        self,
        board: str,
        *,
        period: str | None = None,
        group: str | Mapping[str, str] | None = None,
        limit: int = 100,
    ) -> Flow[list[WindowInfo]]:
        """The windows that can be read, newest first."""
        query = {"period": period, "group": group, "limit": limit}
        return (yield from self._read(f"{self._path(board)}/windows", _Windows, query)).windows

    def percentile(self, board: str, share: float, **where: Unpack[InWindow]) -> Flow[Percentile]:
        """The score that this share of the entries are no better than."""
        return self._read(f"{self._path(board)}/percentile/{share}", Percentile, {**where})

    def distribution(self, board: str, buckets: int = 20, **where: Unpack[InWindow]) -> Flow[Distribution]:
        """How many entries have which scores."""
        return self._read(f"{self._path(board)}/distribution", Distribution, {**where, "buckets": buckets})

    def watch(self, board: str, **watching: Unpack[WatchArguments]) -> Stream[Update]:
        """Watches the first entries of a window: the first update is a `Snapshot`, the others what changes.
        With the id of an update, `last_id` goes on after it.

        If the connection breaks, the client reconnects and goes on where it broke. Raises `Unreachable` if no
        answer comes for the `deadline` of the retries, and the error that ends the view: `NotFound` when the
        board is dropped.
        """
        last_id = watching.pop("last_id", None)
        path = with_query(f"{self._path(board)}/live", {**watching})
        return live.watch(self._caller, Request("GET", path), last_id)

    # The archive

    def history(
        self, board: str, member: str, *, limit: int = 30, **paging: Unpack[ArchiveArguments]
    ) -> Flow[History]:
        """A member's standings in windows that ended, newest first: live, from snapshots or the journal."""
        return self._read(f"{self._member(board, member)}/history", History, {**paging, "limit": limit})

    def snapshots(
        self, board: str, *, limit: int = 100, **paging: Unpack[ArchiveArguments]
    ) -> Flow[SnapshotList]:
        """The board's snapshots, newest first."""
        return self._read(f"{self._path(board)}/snapshots", SnapshotList, {**paging, "limit": limit})

    def snapshot(
        self,
        board: str,
        snapshot: str,
        *,
        limit: int = 100,
        cursor: str | None = None,
        people: bool = False,
    ) -> Flow[SnapshotPage]:
        """A page of one snapshot, by its id."""
        path = f"{self._path(board)}/snapshots/{segment(snapshot)}"
        return self._read(path, SnapshotPage, {"limit": limit, "cursor": cursor, "people": people})

    def export_member(
        self, project: str, member: str, *, limit: int = 10_000, cursor: str | None = None
    ) -> Flow[MemberExport]:
        """Everything that the project keeps about a member, with the first `limit` rows of the journal; after
        a `cursor`, only further rows.
        """
        path = f"{project_path(project)}/members/{member_segment(member)}/export"
        return self._read(path, MemberExport, {"limit": limit, "cursor": cursor})

    def erase(self, project: str, member: str) -> Flow[Erased]:
        """Erases a member from all boards of the project, its journal and snapshots.

        If an earlier try, whose answer was lost, erased it, the counts are those of the last try.
        """
        request = Request("DELETE", f"{project_path(project)}/members/{member_segment(member)}")
        return decoded((yield from self._caller.call(request)), Erased)

    # The server

    def jobs(self) -> Flow[list[JobInfo]]:
        """The background jobs and their state."""
        return [_job(each) for each in (yield from self._read("/v1/jobs", _Jobs)).jobs]

    def request_job(self, name: str) -> Flow[JobInfo]:
        """Requests an extra run of a job; a worker begins it within seconds."""
        return _job((yield from self._caller.call(Request("POST", f"/v1/jobs/{segment(name)}/run"))).body)

    def health(self) -> Flow[Health]:
        """How the server is. Asks once; raises `Unreachable` if no answer comes."""
        request_id = uuid4().hex
        request = self._caller.dressed(Request("GET", "/readyz"), request_id)
        reply: Reply | Lost = yield Send(request, self._caller.timeout)
        if not isinstance(reply, Lost):
            problem = problem_of(reply.body)
            if reply.status < 300:
                return Health(ready=True, checks=decoded(reply, _Readiness).checks)
            if problem is not None and problem.checks:
                return Health(ready=False, checks=problem.checks)
        raise error_of(reply, request_id)

    def _changed(
        self, request: Request, given_id: str, durability: Durability | None, kind: type[Answer]
    ) -> Flow[Answer]:
        request = replace(request, headers={**JSON, **_durable(durability)})
        return decoded((yield from self._caller.call(request, id=given_id, signed=True)), kind)

    def _path(self, board: str) -> str:
        if "/" not in board and self._project:
            board = f"{self._project}/{board}"
        ref = BoardRef.parse(board)
        return f"{project_path(ref.project)}/boards/{segment(ref.board)}"

    def _member(self, board: str, member: str) -> str:
        return f"{self._path(board)}/entries/{member_segment(member)}"


def _consent(allow_drop: str | Iterable[str]) -> Query:
    names = allow_drop if isinstance(allow_drop, str) else ",".join(allow_drop)
    return {"allow_drop": names or None}


def _durable(durability: Durability | None) -> dict[str, str]:
    """The header that asks for another durability than the server's."""
    return {} if durability is None else {"Laurels-Durability": durability}


def _job(encoded: bytes | msgspec.Raw) -> JobInfo:
    return JobInfo(parsed(bytes(encoded), JobState), parsed(bytes(encoded), _Due).next_due)


def _encoded_definition(definition: BoardDefinition | Mapping[str, Any] | None) -> bytes:
    if isinstance(definition, BoardDefinition):
        definition = definition.model_dump(mode="json", exclude_defaults=True)
    return as_json("definition", definition or {})


def _board_lines(
    boards: Mapping[str, BoardDefinition | Mapping[str, Any]], consents: Mapping[str, Query]
) -> Iterator[bytes]:
    """The bodies of the requests that define these boards."""
    body, count = bytearray(), 0
    for name, definition in boards.items():
        raw = msgspec.Raw(_encoded_definition(definition))
        body += msgspec.json.encode({"board": name, "definition": raw, **consents.get(name, {})}) + b"\n"
        count += 1
        if count >= BOARDS_A_REQUEST or len(body) >= lines.BYTES:
            yield bytes(body)
            body, count = bytearray(), 0
    if body:
        yield bytes(body)
