"""What the archive holds of the load's submissions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
from deployment import in_thread, until

if TYPE_CHECKING:
    from deployment import Deployment


async def until_archived(deployment: Deployment) -> None:
    raw = deployment.raw()
    await in_thread(lambda: until(lambda: raw.xlen("lb:{faults/sums}:journal") == 0))
    raw.close()


def journal(deployment: Deployment) -> list[tuple[str, str, int]]:
    """Every submission that the archive holds, as it holds it: twice, if it is there twice."""
    url = deployment.servers.endpoints.postgres_url.replace("postgresql+psycopg://", "postgresql://")
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT id, member, score FROM journal").fetchall()
    return sorted((submission.decode(), member.decode(), int(score)) for submission, member, score in rows)
