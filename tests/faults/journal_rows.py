"""What the archive holds of the load's submissions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
from deployment import in_thread
from waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterable

    from deployment import Deployment

Row = tuple[str, str, int]
"""A submission, its member and score."""


async def until_archived(deployment: Deployment, board: str = "sums") -> None:
    raw = deployment.raw()
    await in_thread(lambda: until(lambda: raw.xlen(f"lb:{{faults/{board}}}:journal") == 0))
    raw.close()


def journal(deployment: Deployment, board: str = "sums") -> list[Row]:
    """Every submission that the archive holds, as it holds it: twice, if it is there twice."""
    url = deployment.servers.endpoints.postgres_url.replace("postgresql+psycopg://", "postgresql://")
    of_board = (
        "SELECT journal.id, member, score FROM laurels.journal JOIN laurels.boards ON boards.id = board_id "
        "WHERE board = %s"
    )
    with psycopg.connect(url) as connection:
        rows = connection.execute(of_board, (board,)).fetchall()
    return sorted((submission.decode(), member.decode(), int(score)) for submission, member, score in rows)


def sums(rows: Iterable[Row]) -> dict[str, int]:
    """By member."""
    totals: dict[str, int] = {}
    for _, member, score in rows:
        totals[member] = totals.get(member, 0) + score
    return totals
