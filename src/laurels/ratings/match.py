"""Matches: as given, as validated, and their results. Pure."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003  # msgspec reads the annotations
from typing import TYPE_CHECKING, Annotated, Any, Self

import msgspec

from laurels.boards.keys import group_dict
from laurels.errors import InvalidInput
from laurels.ratings.systems import most_players
from laurels.scores.submission import Submission, check

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from laurels.boards.board import Board
    from laurels.boards.rating import Rating
    from laurels.moments import Moment
    from laurels.scores.submission import CheckedSubmission


class Match(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A match as a caller gives it: the `winner`, null for a draw; or each player's rank, in the order of
    `players`.

    >>> msgspec.json.encode(Match(["ada", "bob"], "ada"))
    b'{"players":["ada","bob"],"winner":"ada"}'
    """

    players: list[str]
    winner: str | msgspec.UnsetType | None = msgspec.UNSET
    ranks: list[int] | None = None
    at: datetime | None = None
    id: str | None = None
    groups: dict[str, dict[str, str]] | None = None
    """By player."""
    metadata: dict[str, Any] | None = None

    @classmethod
    def of(
        cls, players: Iterable[str], winner: str | msgspec.UnsetType | None, about: Mapping[str, Any]
    ) -> Self:
        """From keyword arguments; groups may be text."""
        groups = about.get("groups")
        if groups is not None:
            about = {**about, "groups": {player: group_dict(each) or {} for player, each in groups.items()}}
        return cls(list(players), winner, **about)


class RatedPlayer(msgspec.Struct, frozen=True, omit_defaults=True):
    """A player's rating and rank after a match, in the board's first window. Ranks count from 1."""

    member: str
    rating: int | float
    previous_rating: int | float
    change: Annotated[int | float, msgspec.Meta(description="How much the rating changed.")]
    rank: int | None
    previous_rank: int | None
    games: int
    provisional: bool
    deviation: float | msgspec.UnsetType = msgspec.UNSET
    """The uncertainty of the rating, if the system has one."""


class Matched(msgspec.Struct, frozen=True):
    """The result of a match: its players, in the order given."""

    id: str
    applied: bool
    players: list[RatedPlayer]


class CheckedMatch(msgspec.Struct, frozen=True):
    """A valid match: its players as submissions without a rating yet, and their ranks."""

    given: Match
    parts: list[CheckedSubmission]
    ranks: list[int]

    @property
    def id(self) -> str:
        """The given id, or one made from the call and the index of the first player."""
        return self.parts[0].id


def check_match(board: Board, given: Match, now: Moment, call: str, index: int = 0) -> CheckedMatch:
    """Validates a match as far as possible without Valkey; raises `InvalidInput` with the field.

    `index`: the first player's place in the call.
    """
    rating = board.definition.rating
    if rating is None:
        raise InvalidInput.at(
            "players", "the board takes scores, not matches; submit scores, or define it with `rating`"
        )
    ranks = _check_players(rating, given)
    for member in given.groups or {}:
        if member not in given.players:
            raise InvalidInput.at(f"groups.{member}", "is not one of the players")
    name = f"~{call}.{index}" if given.id is None else given.id
    parts = [
        _check_player(board, given, now, (place, index + place), name) for place in range(len(given.players))
    ]
    return CheckedMatch(given, parts, ranks)


def _check_players(rating: Rating, given: Match) -> list[int]:
    """Validates the players; returns their ranks."""
    players, most = given.players, most_players(rating)
    if len(players) < 2:
        raise InvalidInput.at("players", f"a match has two players or more, not {len(players)}")
    if len(players) > most:
        beyond = "; the system openskill rates more" if most == 2 else ""
        raise InvalidInput.at("players", f"{rating.system} rates matches of up to {most}{beyond}")
    if len(set(players)) != len(players):
        raise InvalidInput.at("players", "a player is named twice")
    if (given.winner is msgspec.UNSET) == (given.ranks is None):
        raise InvalidInput.at("winner", "say who won, or null for a draw; or give `ranks` instead, not both")
    if given.ranks is not None:
        if len(given.ranks) != len(players) or min(given.ranks) < 1:
            raise InvalidInput.at("ranks", "must be a rank from 1 for each of the players, in their order")
        return given.ranks
    if len(players) > 2:
        raise InvalidInput.at(
            "ranks", "give a rank for each of the players: with more than two, a winner is not enough"
        )
    if given.winner is not None and given.winner not in players:
        raise InvalidInput.at("winner", "is not one of the players; null means a draw")
    return [1 if given.winner in (None, player) else 2 for player in players]


def _check_player(
    board: Board, given: Match, now: Moment, place: tuple[int, int], name: str
) -> CheckedSubmission:
    in_match, in_call = place
    member = given.players[in_match]
    groups = None if given.groups is None else given.groups.get(member)
    submission = Submission(member, 0.0, given.at, groups, name, None, given.metadata)
    try:
        return check(board, submission, now, in_call, by_match=True)
    except InvalidInput as error:
        (field,) = error.fields
        named = {"member": f"players[{in_match}]"}.get(field.field, field.field)
        if named.startswith("groups."):
            named = f"groups.{member}.{named.removeprefix('groups.')}"
        raise InvalidInput.at(named, field.detail) from error
