"""What became of the boards that one call defines. Pure."""

from __future__ import annotations

from typing import Literal

import msgspec

from laurels.errors import Drop, DropNotAllowed, FieldError, InvalidInput, LaurelsError

Outcome = Literal["created", "changed", "unchanged", "refused"]


class DefinitionProblem(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a board was not defined: what a problem (RFC 9457) says of it."""

    type: str
    title: str
    status: int
    detail: str
    errors: tuple[FieldError, ...] = ()
    drops: tuple[Drop, ...] = ()


class Defined(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of one board. `version`: of its definition now, unless it was refused."""

    board: str
    outcome: Outcome
    version: int | None = None
    problem: DefinitionProblem | None = None


def refused(board: str, error: LaurelsError) -> Defined:
    return Defined(
        board,
        "refused",
        problem=DefinitionProblem(
            type=f"/problems/{error.kind}",
            title=error.title,
            status=error.status,
            detail=error.detail,
            errors=error.fields if isinstance(error, InvalidInput) else (),
            drops=error.drops if isinstance(error, DropNotAllowed) else (),
        ),
    )
