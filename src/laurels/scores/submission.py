"""A submission: one score for one member at a moment, as given and as validated. Pure."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final, Self, TypeAlias

import msgspec
from msgspec.structs import force_setattr

from laurels.boards.keys import WHOLE, Cut, group_dict
from laurels.errors import Forbidden, InvalidInput
from laurels.moments import moment_of
from laurels.wording import no_such, one_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from laurels.boards.board import Board
    from laurels.boards.ordering import Score
    from laurels.moments import Moment

MEMBER_BYTES: Final = 256
GROUP_VALUE_BYTES: Final = 256
ID_BYTES: Final = 256
METADATA_BYTES: Final = 4096
# How far a client's clock may run ahead of ours.
AHEAD: Final = timedelta(minutes=1) // timedelta(microseconds=1)

EVERYBODY: Final = (WHOLE,)
OPERATIONS: Final = ("best", "last", "first", "sum")
# Why a submission is refused before it reaches Valkey.
Refusal: TypeAlias = InvalidInput | Forbidden
REFUSALS: Final = (InvalidInput, Forbidden)
# An id that Laurels made: the submission's call and its place in it, after the id space of a player if one
# sends it again.
MADE_ID: Final = re.compile(r"(?:[0-9a-f]{32}:)?~([A-Za-z0-9_-]{22})\.\d{1,6}")


class Submission(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A submission as a caller gives it.

    >>> msgspec.json.encode(Submission("ada", 1200, groups={"country": "GB"}))
    b'{"member":"ada","score":1200,"groups":{"country":"GB"}}'
    """

    member: str
    score: int | float | str
    at: datetime | None = None
    groups: dict[str, str] | None = None
    id: str | None = None
    op: str | None = None
    metadata: dict[str, Any] | None = None

    @classmethod
    def of(cls, member: str, score: Score | str, carried: Mapping[str, Any]) -> Self:
        """From keyword arguments; groups may be text."""
        fields: dict[str, Any] = {**carried, "groups": group_dict(carried.get("groups"))}
        return cls(member, score, **fields)


class AdmittedSubmission(Submission):
    """A submission with what its request says of it."""

    own_groups: dict[str, str] | None = None
    """A player's groups, if a player sends it: then the board must be one that players submit to. Groups that
    the board does not have are left out.
    """
    fingerprint: str = ""
    """The fingerprint of the request, if the id is its idempotency key."""

    @classmethod
    def from_given(
        cls, given: Submission, own_groups: dict[str, str] | None = None, fingerprint: str = ""
    ) -> Self:
        return cls(
            given.member,
            given.score,
            given.at,
            given.groups,
            given.id,
            given.op,
            given.metadata,
            own_groups,
            fingerprint,
        )


class CheckedSubmission(msgspec.Struct, frozen=True, gc=False):
    """A validated submission: the board accepts it, unless Valkey knows a reason not to."""

    given: Submission
    index: int
    """Its place in its call."""
    member: bytes
    score: Score
    moment: Moment
    groups: dict[str, str] | None
    cuts: tuple[Cut, ...]
    id: str
    op: str
    metadata: str
    fingerprint: str = ""

    def moved(self, board: Board, now: Moment, index: int) -> CheckedSubmission:
        """Moves the submission to another place, in a call of this moment; an `at` of its own stays."""
        force_setattr(self, "index", index)
        if self.given.at is None:
            force_setattr(self, "moment", _moment(board, None, now))
        return self

    @property
    def made_by(self) -> str:
        """The call that made the id, if a retry brings back an id of ours; else ""."""
        made = MADE_ID.fullmatch(self.id)
        return made[1] if made else ""


def check_member(member: object) -> bytes:
    """The member as UTF-8: 1 to 256 bytes, any characters."""
    if not isinstance(member, str):
        raise InvalidInput.at("member", "must be a string")
    return _encoded("member", member, MEMBER_BYTES)


def member_text(member: bytes) -> str:
    """The member to show. An adopted sorted set may hold bytes that are not UTF-8; they become escapes."""
    return member.decode("utf-8", "backslashreplace")


def _encoded(field: str, text: str, limit: int) -> bytes:
    try:
        encoded = text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput.at(field, "must be valid Unicode, without lone surrogates") from error
    if not 1 <= len(encoded) <= limit:
        raise InvalidInput.at(field, f"must have 1 to {limit} bytes of UTF-8, not {len(encoded)}")
    return encoded


def check(
    board: Board, given: Submission, now: Moment, index: int = 0, *, by_match: bool = False
) -> CheckedSubmission:
    """Validates a submission without the stores. Raises `InvalidInput` with the field; `Forbidden` for a
    player's submission to a board that takes none.

    `by_match`: whether the score is a rating after a match.
    """
    groups, fingerprint = given.groups, ""
    if isinstance(given, AdmittedSubmission):
        fingerprint = given.fingerprint
        if given.own_groups is not None:
            groups = _players_groups(board, groups, given.own_groups)
    member = check_member(given.member)
    score = board.ordering.parse_score(given.score)
    if board.is_limited and not by_match:
        _check_limits(board, score)
    return CheckedSubmission(
        given=given,
        index=index,
        member=member,
        score=score,
        moment=_moment(board, given.at, now),
        groups=groups,
        cuts=EVERYBODY if groups is None else (WHOLE, *_check_groups(board, groups)),
        id="" if given.id is None else check_id(given.id),
        op="" if given.op is None else _check_operation(board, given.op),
        metadata=check_metadata(given.metadata),
        fingerprint=fingerprint,
    )


def _players_groups(
    board: Board, given: dict[str, str] | None, of_player: dict[str, str]
) -> dict[str, str] | None:
    if not board.definition.player_writes:
        raise Forbidden(f"players cannot submit to {board.ref}: its definition has no player_writes")
    own = {name: value for name, value in of_player.items() if name in board.dimensions}
    return {**(given or {}), **own} or given


def _check_limits(board: Board, score: Score) -> None:
    if board.is_rated:
        raise InvalidInput.at("score", "the board takes its scores from matches; report a match instead")
    limits = board.definition.limits
    if limits.min is not None and score < limits.min:
        raise InvalidInput.at("score", f"{score} is below the board's min of {limits.min}")
    if limits.max is not None and score > limits.max:
        raise InvalidInput.at("score", f"{score} is above the board's max of {limits.max}")


def _moment(board: Board, at: datetime | None, now: Moment) -> Moment:
    unique_moments = board.unique_moments
    if at is None:
        return unique_moments.next_free(now) if unique_moments else now
    stated = _check_moment(board, at, now)
    return unique_moments.next_stated(stated) if unique_moments else stated


def _check_moment(board: Board, at: datetime, now: Moment) -> Moment:
    if at.tzinfo is None:
        raise InvalidInput.at("at", "needs a timezone: write it like 2025-10-24T12:00:00Z")
    moment = moment_of(at)
    if moment > now + AHEAD:
        raise InvalidInput.at("at", "lies in the future")
    if now - moment > board.definition.lateness // timedelta(microseconds=1):
        raise InvalidInput.at("at", "is older than the board's lateness allows")
    return moment


def _check_groups(board: Board, groups: dict[str, str]) -> tuple[Cut, ...]:
    for name, value in groups.items():
        if name not in board.dimensions:
            raise InvalidInput.at(f"groups.{name}", no_such(name, sorted(board.dimensions), "dimension"))
        if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers exist
            raise InvalidInput.at(f"groups.{name}", "must be a string")
        _encoded(f"groups.{name}", value, GROUP_VALUE_BYTES)
    return cuts_of(board, groups)


def cuts_of(board: Board, groups: dict[str, str]) -> tuple[Cut, ...]:
    """The cuts where a member of these groups is ranked besides the whole board."""
    return tuple(
        Cut(dimensions, tuple(groups[name] for name in dimensions))
        for dimensions in board.definition.groups
        if all(name in groups for name in dimensions)
    )


def check_id(given: str) -> str:
    _encoded("id", given, ID_BYTES)
    return given


def _check_operation(board: Board, op: str) -> str:
    if not board.definition.allow_op:
        raise InvalidInput.at("op", "is not allowed: the board is defined without allow_op")
    if op not in OPERATIONS:
        raise InvalidInput.at("op", one_of(OPERATIONS, op))
    return op


def check_metadata(metadata: dict[str, Any] | None) -> str:
    """The metadata as JSON; "" for none."""
    if metadata is None:
        return ""
    if not isinstance(metadata, dict):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers exist
        raise InvalidInput.at("metadata", "must be an object")
    try:
        encoded = msgspec.json.encode(metadata)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput.at("metadata", f"must be JSON: {error}") from error
    if len(encoded) > METADATA_BYTES:
        raise InvalidInput.at(
            "metadata", f"must have at most {METADATA_BYTES} bytes of JSON, not {len(encoded)}"
        )
    return encoded.decode()


class Submitted(msgspec.Struct, frozen=True):
    """The member's entry after a submission, in the board's first window. Ranks count from 1."""

    member: str
    score: int | float | None
    previous_score: int | float | None
    rank: int | None
    previous_rank: int | None
    applied: bool
    id: str


class ReplayedSubmit(Submitted, frozen=True):
    """The answer that a request with this idempotency key got before."""


class MetadataSet(msgspec.Struct, frozen=True):
    """The result of a change of metadata."""

    member: str
    entries: Annotated[int, msgspec.Meta(description="How many entries have the metadata now.")]
    applied: Annotated[bool, msgspec.Meta(description="False if the id was seen before.")]
    id: str


class Rejected(msgspec.Struct, frozen=True):
    """A refused submission of a batch, and the reason."""

    index: int
    detail: str


class BatchResult(msgspec.Struct, frozen=True):
    """The result of a batch: how many submissions were accepted, and which were not."""

    accepted: int
    rejected: list[Rejected]
