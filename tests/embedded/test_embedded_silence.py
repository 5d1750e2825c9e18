"""The library prints and logs nothing in a user's program unless asked to."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

PROGRAMS = {
    # The servers are started, so background work is done here too.
    "laurels": """
import asyncio, sys
from laurels import Laurels
async def main():
    async with Laurels(data_dir=sys.argv[1]) as laurels:
        await laurels.define("a/b", {"windows": [{"period": "rolling", "days": 2}], "ties": "earliest"})
        await laurels.submit("a/b", "ada", 5, metadata={"n": 1})
        await laurels.archived("a/b")
        await laurels.rebuild("a/b")
        await laurels.drop("a/b", allow_drop="all")
asyncio.run(main())
""",
    "laurels.sync": """
import sys
from laurels.sync import Laurels
with Laurels(data_dir=sys.argv[1]) as laurels:
    laurels.define("a/c")
    laurels.submit("a/c", "ada", 5)
    try:
        laurels.standing("a/c", "zoe")
    except Exception:
        pass
    laurels.drop("a/c", allow_drop="all")
""",
    "laurels.index": """
import asyncio, sys
from sqlalchemy import BigInteger
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from laurels import Laurels, embedded
from laurels.index import Indexes, LeaderboardIndex, install, leaderboard
class Base(DeclarativeBase):
    pass
class Score(Base):
    __tablename__ = "scores_of_the_silent"
    __leaderboards__ = [LeaderboardIndex(score="score")]
    id: Mapped[str] = mapped_column(primary_key=True)
    score: Mapped[int] = mapped_column(BigInteger)
async def main():
    async with Laurels(data_dir=sys.argv[1]) as laurels:
        engine = create_async_engine(embedded.attach(laurels.settings.data_dir).postgres_url)
        async with engine.begin() as connection:
            await connection.run_sync(Base.metadata.create_all)
        await install(engine, Base)
        async with Indexes(laurels, engine, Base) as index, index.maintaining():
            async with AsyncSession(engine) as session:
                session.add(Score(id="ada", score=5))
                await session.commit()
            await index.caught_up()
            assert [each.item.id for each in await leaderboard(Score).top(1)] == ["ada"]
        await engine.dispose()
asyncio.run(main())
""",
    "a server that is not there": """
from laurels.client import Client, Retries
from laurels.sync import Laurels
for use in (
    lambda: Client("http://127.0.0.1:9", key="lk_x", retries=Retries(attempts=2)).submit("a/b", "ada", 1),
    lambda: Laurels(valkey_url="redis://127.0.0.1:9", postgres_url="postgresql://x@127.0.0.1:9/x").open(),
):
    try:
        use()
    except Exception:
        continue
    raise AssertionError
""",
}
ASKED = """
import logging, sys
logging.basicConfig(level=logging.INFO)
"""


def run(program: str, data_dir: Path) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", program, str(data_dir)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_programs_that_use_it_print_nothing(data_dir: Path):
    for name, program in PROGRAMS.items():
        ended = run(program, data_dir)
        assert (name, ended.returncode, ended.stdout, ended.stderr) == (name, 0, "", "")


def test_logs_go_to_stderr_when_asked_for(data_dir: Path):
    ended = run(ASKED + PROGRAMS["laurels"], data_dir)
    assert (ended.returncode, ended.stdout) == (0, "")
    assert "background work begins" in ended.stderr
