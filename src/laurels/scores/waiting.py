"""Single submissions that wait for the next call of their board."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from laurels.scores.submission import Submitted

if TYPE_CHECKING:
    from laurels.boards.board import Board
    from laurels.scores.submission import CheckedSubmission

# How many share a call at most: with their ranks they take Valkey 1 to 4 ms.
TOGETHER: Final = 64

OnOutcome: TypeAlias = Callable[[Submitted | Exception], None]
"""Receives the outcome of a submission; must not raise."""


class WaitingSubmission(NamedTuple):
    """A submission that is valid under this definition of its board, and what receives its outcome."""

    checked: CheckedSubmission
    board: Board
    on_outcome: OnOutcome


@dataclass(slots=True)
class SubmissionQueue:
    """Single submissions to one board that wait for a call, and the members in the running calls."""

    waiting: deque[WaitingSubmission] = field(default_factory=deque)
    calls: int = 0
    members: set[bytes] = field(default_factory=set)

    def take(self) -> list[WaitingSubmission]:
        """Takes submissions from the front, up to the first whose member is in a call already: concurrent
        calls have no order, and one call reports a member's rank once.
        """
        taken: list[WaitingSubmission] = []
        waiting, members = self.waiting, self.members
        while waiting and len(taken) < TOGETHER and (member := waiting[0].checked.member) not in members:
            members.add(member)
            taken.append(waiting.popleft())
        return taken

    def release(self, taken: list[WaitingSubmission]) -> None:
        self.members.difference_update(waiting.checked.member for waiting in taken)
