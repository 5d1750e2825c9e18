"""Every operation as a flow: what is asked, and what the answer means.

The names, arguments and results are those of `laurels.Laurels`. A new route is a method here, and a line in
each of the two clients (`blocking`, `awaiting`).
"""

from __future__ import annotations

from datetime import datetime  # noqa: TC003  # msgspec reads the annotations
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypedDict, TypeVar, Unpack
from urllib.parse import quote, urlencode
from uuid import uuid4

import msgspec
from msgspec import UNSET, UnsetType
from pydantic import ValidationError

from laurels.boards.definition import BoardDefinition, StoredBoard, field_errors
from laurels.boards.keys import BoardRef
from laurels.boards.windows import WindowInfo  # noqa: TC001  # msgspec reads the annotations
from laurels.client import lines, live
from laurels.client.decoding import decoded
from laurels.client.errors import NotUnderstood, error_of, problem_of
from laurels.client.steps import Give, Lost, Request, Send
from laurels.errors import InvalidInput, NotFound
from laurels.ratings.match import Match, Matched
from laurels.scores.results import Among, Distribution, Entry, Page, Percentile, Standing
from laurels.scores.submission import BatchResult, MetadataSet, Submission, Submitted, check_member

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from laurels.arguments import AboutMatch, Carried, InWindow, Paging, Selection
    from laurels.boards.ordering import Score
    from laurels.client.call import Caller
    from laurels.client.lines import Compression
    from laurels.client.live import Update
    from laurels.client.steps import Flow, Reply, Stream
    from laurels.valkey.messages import Durability

Query: TypeAlias = "Mapping[str, object]"
Answer = TypeVar("Answer")

JSON: Final = {"Content-Type": "application/json"}


class Health(msgspec.Struct, frozen=True):
    """Whether the server can answer, and what it found of each thing that it needs."""

    ready: bool
    checks: dict[str, str]


class Stretch(TypedDict, total=False):
    """Which pages: `limit` entries each, from an end or from a rank on."""

    period: str | None
    slot: str | None
    group: str | None
    limit: int
    start: Literal["top", "bottom"]
    rank: int | None
    change: bool


class Watching(TypedDict, total=False):
    """Which view of a board: the best of a window, and perhaps one member wherever it stands."""

    period: str | None
    slot: str | None
    group: str | None
    limit: int
    member: str | None


class Batching(TypedDict, total=False):
    id: str | None
    """Gives each submission without an id of its own the id `ID.INDEX`; made if it is not given."""
    compress: Compression | None
    """How the lines are compressed on their way."""
    durability: Durability | None
    """How safe each request's submissions must be before it is answered."""


class _Board(msgspec.Struct, frozen=True):
    project: str
    board: str
    version: int
    created_at: datetime
    updated_at: datetime
    definition: dict[str, Any]


class _Boards(msgspec.Struct, frozen=True):
    boards: list[_Board]


class _Projects(msgspec.Struct, frozen=True):
    projects: list[str]


class _Windows(msgspec.Struct, frozen=True):
    windows: list[WindowInfo]


class _Readiness(msgspec.Struct, frozen=True):
    checks: dict[str, str]


class Operations:
    def __init__(self, caller: Caller, project: str | None = None) -> None:
        self._caller = caller
        self._project = project

    # Boards

    def define(
        self,
        board: str,
        definition: BoardDefinition | Mapping[str, Any] | None = None,
        *,
        allow_drop: str | Iterable[str] = (),
    ) -> Flow[StoredBoard]:
        """Creates the board, or changes it; a mapping is the JSON of the API. `allow_drop` names the windows
        that may lose entries (`"weekly,monthly"`), else `DropNotAllowed`.
        """
        if isinstance(definition, BoardDefinition):
            fields: Mapping[str, Any] = definition.model_dump(mode="json", exclude_defaults=True)
        else:
            fields = definition or {}
        path = _asking(self._path(board), _allowing(allow_drop))
        request = Request("PUT", path, body=_encoded("definition", fields), headers=JSON)
        reply = yield from self._caller.call(request)
        return _stored(decoded(reply, _Board), created=reply.status == 201)

    def definition(self, board: str) -> Flow[BoardDefinition]:
        """The definition in force."""
        return _stored((yield from self._asked(self._path(board), _Board))).definition

    def drop(self, board: str, *, allow_drop: str | Iterable[str] = ()) -> Flow[None]:
        """Drops the board. Raises `DropNotAllowed` if it holds entries, unless `allow_drop` is `"all"`."""
        path = _asking(self._path(board), _allowing(allow_drop))
        yield from self._caller.call(Request("DELETE", path), once_gone=True)

    def projects(self) -> Flow[list[str]]:
        """The projects that have boards and that the key may see, by name."""
        return (yield from self._asked("/v1/projects", _Projects)).projects

    def boards(self, project: str | None = None) -> Flow[list[StoredBoard]]:
        """The boards of a project, by default the client's own, by name."""
        name = project or self._project
        if not name:
            raise InvalidInput.at("project", "name one, or give the client a project")
        listed = yield from self._asked(f"/v1/projects/{_segment(name)}/boards", _Boards)
        return [_stored(board) for board in listed.boards]

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
        """One score for one member, and where it leaves it in the board's first window.

        It has an id before it is first sent, so it counts once, however often it has to be tried. If it
        counted but its answer was lost, the answer to the next try says that it was not `applied`.
        """
        given = Submission(member, score, **carried)
        if given.id is None:
            given.id = uuid4().hex
        headers = {**JSON, **_durable(durability)}
        request = Request("POST", f"{self._path(board)}/scores", _encoded("submission", given), headers)
        return decoded((yield from self._caller.call(request, id=given.id, signed=True)), Submitted)

    def match(
        self,
        board: str,
        players: Sequence[str],
        winner: str | UnsetType | None = UNSET,
        *,
        durability: Durability | None = None,
        **about: Unpack[AboutMatch],
    ) -> Flow[Matched]:
        """A rated game, and where it leaves its players; `winner` None is a draw.

        It has an id before it is first sent, so it counts once, however often it has to be tried.
        """
        given = Match(list(players), winner, **about)
        if given.id is None:
            given.id = uuid4().hex
        headers = {**JSON, **_durable(durability)}
        request = Request("POST", f"{self._path(board)}/matches", _encoded("match", given), headers)
        return decoded((yield from self._caller.call(request, id=given.id, signed=True)), Matched)

    def submit_many(
        self, board: str, progress: Callable[[int], None] | None = None, **how: Unpack[Batching]
    ) -> Flow[BatchResult]:
        batch = lines.Batch(
            how.get("id") or uuid4().hex, how.get("compress"), progress, _durable(how.get("durability"))
        )
        return lines.submit(self._caller, f"{self._path(board)}/scores/batch", batch)

    # Entries

    def page(self, board: str, **paging: Unpack[Paging]) -> Flow[Page]:
        """Entries from the top (or with `start="bottom"`), behind a cursor, or from a rank on."""
        query = {"from" if name == "start" else name: value for name, value in paging.items()}
        return self._asked(f"{self._path(board)}/entries", Page, query)

    def pages(self, board: str, **stretch: Unpack[Stretch]) -> Stream[Page]:
        """One page after the other, each from where the one before ended, however entries change."""
        page = yield from self.page(board, **stretch)
        yield Give(page)
        while page.next is not None:
            page = yield from self._behind(board, page, stretch)
            yield Give(page)

    def entries(self, board: str, **stretch: Unpack[Stretch]) -> Stream[Entry]:
        """Every entry of a window, asked for a page at a time."""
        page = yield from self.page(board, **stretch)
        yield from map(Give, page.entries)
        while page.next is not None:
            page = yield from self._behind(board, page, stretch)
            yield from map(Give, page.entries)

    def standing(self, board: str, member: str, **where: Unpack[InWindow]) -> Flow[Standing]:
        """Where one member stands."""
        return self._asked(self._member(board, member), Standing, {**where})

    def around(
        self, board: str, member: str, above: int = 5, below: int = 5, **where: Unpack[InWindow]
    ) -> Flow[Page]:
        """A member with those just above and below it."""
        query = {**where, "above": above, "below": below}
        return self._asked(f"{self._member(board, member)}/around", Page, query)

    def among(self, board: str, members: Iterable[str], **where: Unpack[InWindow]) -> Flow[Among]:
        """These members ranked among themselves, each with its rank among all."""
        path = _asking(f"{self._path(board)}/entries/among", {**where})
        request = Request("POST", path, _encoded("members", {"members": list(members)}), JSON)
        return decoded((yield from self._caller.call(request)), Among)

    def remove(self, board: str, member: str, *, durability: Durability | None = None) -> Flow[bool]:
        """Takes a member out of every live window and group; whether it was in any.

        True as well if an earlier try, whose answer was lost, may have done it.
        """
        try:
            request = Request("DELETE", self._member(board, member), headers=_durable(durability))
            yield from self._caller.call(request, once_gone=True)
        except NotFound:
            yield from self.definition(board)  # there is a board, so it is the member that is missing
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
        """Gives a member's entries other metadata, or none, without a score: in every live window and group,
        or in those that `period`, `slot` and `group` name. Raises `NotFound` when there is no such entry.

        It has an id before it is first sent, so it counts once, however often it has to be tried. If it
        counted but its answer was lost, the answer to the next try says that it was not `applied`.
        """
        given_id = selection.get("id") or uuid4().hex
        where = {name: selection.get(name) for name in ("period", "slot", "group")}
        path = _asking(self._member(board, member), where)
        content = _encoded("metadata", {"metadata": metadata, "id": given_id})
        request = Request("PATCH", path, content, {**JSON, **_durable(durability)})
        return decoded((yield from self._caller.call(request, id=given_id, signed=True)), MetadataSet)

    # Windows

    def windows(
        self, board: str, *, period: str | None = None, group: str | None = None, limit: int = 100
    ) -> Flow[list[WindowInfo]]:
        """The windows that can be asked for, newest first."""
        query = {"period": period, "group": group, "limit": limit}
        return (yield from self._asked(f"{self._path(board)}/windows", _Windows, query)).windows

    def percentile(self, board: str, share: float, **where: Unpack[InWindow]) -> Flow[Percentile]:
        """The score that this share of the entries are no better than."""
        return self._asked(f"{self._path(board)}/percentile/{share}", Percentile, {**where})

    def distribution(self, board: str, buckets: int = 20, **where: Unpack[InWindow]) -> Flow[Distribution]:
        """How many entries have which scores."""
        return self._asked(f"{self._path(board)}/distribution", Distribution, {**where, "buckets": buckets})

    # What changes

    def live(self, board: str, **watching: Unpack[Watching]) -> Stream[Update]:
        """What changes in a view, as it changes: a `Snapshot`, then each `Change`; at last, an `End`.

        A connection that breaks is made again, and goes on where it broke. Raises `Unreachable` when nobody
        answers for as long as the client's retries go on.
        """
        return live.watch(self._caller, Request("GET", _asking(f"{self._path(board)}/live", {**watching})))

    # The server

    def health(self) -> Flow[Health]:
        """How the server is, asked once; raises `Unreachable` when nobody answers."""
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

    def _asked(self, path: str, kind: type[Answer], query: Query | None = None) -> Flow[Answer]:
        return decoded((yield from self._caller.call(Request("GET", _asking(path, query or {})))), kind)

    def _behind(self, board: str, page: Page, stretch: Stretch) -> Flow[Page]:
        """What a cursor does not remember is said again."""
        return self.page(
            board, cursor=page.next, limit=stretch.get("limit", 100), change=stretch.get("change", False)
        )

    def _path(self, board: str) -> str:
        if "/" not in board and self._project:
            board = f"{self._project}/{board}"
        ref = BoardRef.parse(board)
        return f"/v1/projects/{_segment(ref.project)}/boards/{_segment(ref.board)}"

    def _member(self, board: str, member: str) -> str:
        check_member(member)
        return f"{self._path(board)}/entries/{_segment(member)}"


def _allowing(allow_drop: str | Iterable[str]) -> Query:
    names = allow_drop if isinstance(allow_drop, str) else ",".join(allow_drop)
    return {"allow_drop": names or None}


def _durable(durability: Durability | None) -> dict[str, str]:
    """The header that asks for more, or less, than the server gives by itself."""
    return {} if durability is None else {"Laurels-Durability": durability}


def _stored(board: _Board, *, created: bool = False) -> StoredBoard:
    try:
        definition = BoardDefinition.model_validate(board.definition)
    except ValidationError as error:
        wrong = "; ".join(f"{each.field}: {each.detail}" for each in field_errors(error))
        raise NotUnderstood(
            f"the definition of {board.project}/{board.board} is of another version of Laurels: {wrong}"
        ) from error
    return StoredBoard(
        board.project, board.board, definition, board.version, board.created_at, board.updated_at, created
    )


def _encoded(field: str, value: object) -> bytes:
    try:
        return msgspec.json.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput.at(field, f"cannot be written as JSON: {error}") from error


def _asking(path: str, query: Query) -> str:
    """The path with its query; what is None is left out."""
    asked = {name: value for name, value in query.items() if value is not None}
    if not asked:
        return path
    pairs = {name: str(value).lower() if isinstance(value, bool) else value for name, value in asked.items()}
    return f"{path}?{urlencode(pairs, quote_via=quote)}"


def _segment(text: str) -> str:
    """One part of a path. Dots alone would be folded away on the way."""
    quoted = quote(text, safe="")
    return quoted.replace(".", "%2E") if quoted.strip(".") == "" else quoted
