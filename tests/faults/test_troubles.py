"""Valkey out of memory, a full disk, PostgreSQL away, a clock an hour ahead or behind: in turn, under load.

Clients retry by id. Nothing that was acknowledged is lost, nothing counts twice, no request is answered
with 500, a fed board has what its feeder has, and the journal is archived soon after each trouble has ended.
"""

from __future__ import annotations

import os
import subprocess
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import httpx
import pytest
from deployment import KEY, Deployment, in_thread
from install_packages import FAKETIME_ADVICE, faketime
from journal_rows import journal, until_archived
from load import Load
from supported_servers import valkey_server
from valkey_servers import running
from waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from contextlib import AbstractContextManager
    from pathlib import Path

    Trouble = Callable[[Deployment], AbstractContextManager[None]]

ROUNDS = int(os.environ.get("TROUBLE_ROUNDS", "1"))
DISK_MIB = 320
HOUR = 3600


@contextmanager
def out_of_memory(deployment: Deployment) -> Generator[None]:
    raw = deployment.raw()
    raw.config_set("maxmemory", 1)  # pyright: ignore[reportUnknownMemberType]
    try:
        yield
    finally:
        raw.config_set("maxmemory", 0)  # pyright: ignore[reportUnknownMemberType]
        raw.close()


@contextmanager
def full_disk(deployment: Deployment) -> Generator[None]:
    ballast = deployment.data / "ballast"
    with ballast.open("wb", buffering=0) as file:
        size = 1 << 20
        while size:
            try:
                file.write(bytes(size))
            except OSError:
                size //= 2
    try:
        yield
    finally:
        ballast.unlink()


@contextmanager
def no_postgres(deployment: Deployment) -> Generator[None]:
    with deployment.without_postgres():
        yield


@pytest.fixture
def small_disk(place: Path) -> Generator[None]:
    data = place / "data"
    data.mkdir(mode=0o711)
    options = f"size={DISK_MIB}m,mode=0711"
    mounted = subprocess.run(["/bin/mount", "-t", "tmpfs", "-o", options, "laurels", str(data)], check=False)
    if mounted.returncode:
        pytest.skip("only root may mount a small disk")
    yield
    subprocess.run(["/bin/umount", "--lazy", str(data)], check=True)


async def go_through(
    deployment: Deployment, trouble: Trouble, *, stops_writes: bool = False, stops_archive: bool = False
) -> None:
    async with deployment.clients(8) as clients:
        load = Load("sums")
        await clients[0].define("fed", {"aggregate": "sum"})
        await clients[0].define(load.board, {"aggregate": "sum", "feeds": ["faults/fed"]})
        async with load.running(clients):
            for _ in range(ROUNDS):
                await load.until_acknowledged(100)
                with trouble(deployment):
                    if stops_writes:
                        await in_thread(lambda: until(lambda: submit_status(deployment) == 503))
                    else:
                        await load.until_acknowledged(100)
                    if not (stops_writes or stops_archive):
                        there = len(load.acknowledged)
                        await in_thread(lambda there=there: until(lambda: len(journal(deployment)) >= there))
                await load.until_acknowledged(100)
        for submission, (member, score) in list(load.acknowledged.items())[::10]:
            again = await clients[0].submit(load.board, member, score, id=submission)
            assert not again.applied
        await until_archived(deployment)
        for board in (load.board, "fed"):
            page = await clients[0].page(board)
            assert {entry.member: entry.score for entry in page.entries} == load.sums(), board
    assert journal(deployment) == load.rows()
    assert '"status": 500' not in deployment.log("api")


def submit_status(deployment: Deployment) -> int:
    """Of a submission that changes nothing that is compared: another board's."""
    sent = httpx.post(
        f"{deployment.url}/v1/projects/faults/boards/probe/scores",
        json={"member": "ada", "score": 1},
        headers={"Authorization": f"Bearer {KEY}"},
        timeout=60,
    )
    assert sent.status_code in {200, 404, 503}, sent.text
    if sent.status_code == 503:
        assert int(sent.headers["retry-after"]) >= 1
        assert sent.json()["detail"]
    return sent.status_code


async def test_valkey_out_of_memory_loses_nothing(place: Path):
    deployment = Deployment(place, {}, ("api", "worker"))
    with deployment.running():
        await prepare(deployment)
        await go_through(deployment, out_of_memory, stops_writes=True)


@pytest.mark.usefixtures("small_disk")
async def test_a_full_disk_loses_nothing(place: Path):
    deployment = Deployment(place, {}, ("api", "worker"))
    with deployment.running():
        await prepare(deployment)
        await go_through(deployment, full_disk, stops_writes=True)


async def test_postgres_away_loses_nothing(place: Path):
    deployment = Deployment(place, {}, ("api", "worker"))
    with deployment.running():
        await prepare(deployment)
        await go_through(deployment, no_postgres, stops_archive=True)


@pytest.mark.parametrize("seconds", [HOUR, -HOUR])
@pytest.mark.parametrize("whose", ["laurels", "valkey"])
async def test_clocks_that_step_by_an_hour_and_back_lose_nothing(place: Path, whose: str, seconds: int):
    # The processes that load it read the time with the offset that a file holds.
    library = faketime()
    if library is None:
        pytest.skip(FAKETIME_ADVICE)
    offset = place / "offset"
    offset.write_text("+0")
    offset.chmod(0o644)
    settings = {
        "LD_PRELOAD": str(library),
        "FAKETIME_TIMESTAMP_FILE": str(offset),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }

    @contextmanager
    def stepped(_: Deployment) -> Generator[None]:
        offset.write_text(f"{seconds:+d}")
        try:
            yield
        finally:
            offset.write_text("+0")

    with ExitStack() as stack:
        if whose == "laurels":
            deployment = Deployment(place, settings, ("api", "worker"))
        else:
            server = stack.enter_context(running(valkey_server(), settings))
            deployment = Deployment(place, {}, ("api", "worker"), valkey_url=server.url)
        stack.enter_context(deployment.running())
        await prepare(deployment)
        await go_through(deployment, stepped)


async def prepare(deployment: Deployment) -> None:
    async with deployment.clients(1) as (client,):
        await client.define("probe", {})
