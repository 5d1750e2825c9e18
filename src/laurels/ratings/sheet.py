"""Computes the matches of one call, one after the other. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from laurels.ratings.state import RatingState
from laurels.ratings.systems import RatingChange, newcomer, outcomes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from laurels.boards.rating import Rating
    from laurels.journal.entry import RowFields
    from laurels.ratings.match import CheckedMatch
    from laurels.scores.submission import CheckedSubmission


@dataclass(frozen=True, slots=True)
class KnownRatings:
    """What matches are computed from: the players' states, and which match ids were seen before."""

    states: Mapping[bytes, bytes]
    repeated: Sequence[bool]


@dataclass(slots=True)
class Sheet:
    """The results of matches: submissions of ratings, journal rows, and the players' new states."""

    rating: Rating
    known: KnownRatings
    parts: list[CheckedSubmission] = field(default_factory=list["CheckedSubmission"])
    skip: list[int] = field(default_factory=list[int])
    """For each part 1 if it enters no window, else 0."""
    journal: list[RowFields] = field(default_factory=list["RowFields"])
    outcomes: list[list[RatingChange]] = field(default_factory=list[list[RatingChange]])
    """For each match, of each player."""
    states: dict[bytes, RatingState] = field(default_factory=dict[bytes, RatingState])
    changed: dict[bytes, bytes] = field(default_factory=dict[bytes, bytes])

    @classmethod
    def of(cls, rating: Rating, matches: Sequence[CheckedMatch], known: KnownRatings) -> Sheet:
        """Computes the matches in order. A repeated match changes nothing."""
        sheet = cls(rating, known)
        for played, is_repeated in zip(matches, known.repeated, strict=True):
            states = [sheet._state(part.member) for part in played.parts]
            if is_repeated:
                sheet._repeat(played, states)
            else:
                sheet._play(played, outcomes(rating, states, played.ranks))
        return sheet

    def is_provisional(self, state: RatingState) -> bool:
        return state.games < self.rating.provisional

    def _state(self, member: bytes) -> RatingState:
        state = self.states.get(member)
        if state is None:
            known = self.known.states.get(member)
            state = self.states[member] = RatingState.parse(known) if known else newcomer(self.rating)
        return state

    def _repeat(self, played: CheckedMatch, states: list[RatingState]) -> None:
        self.parts += played.parts
        self.skip += [1] * len(states)
        self.outcomes.append([RatingChange(state, state, 0.0) for state in states])

    def _play(self, played: CheckedMatch, happened: list[RatingChange]) -> None:
        self.outcomes.append(happened)
        for part, (_, after, _) in zip(played.parts, happened, strict=True):
            is_ranked = self.rating.rank_provisional or not self.is_provisional(after)
            text = after.text()
            self.states[part.member], self.changed[part.member] = after, text
            self.parts.append(msgspec.structs.replace(part, score=after.rating + 0.0))
            self.skip.append(int(not is_ranked))
            self.journal.append(
                (
                    part.index,
                    part.id,
                    part.member,
                    after.rating if is_ranked else None,
                    part.moment,
                    part.groups,
                    text.decode(),
                    part.metadata,
                )
            )
