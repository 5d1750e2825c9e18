"""Everything that Laurels does in Valkey, and a watch that writes down which keys it touches."""

from __future__ import annotations

import asyncio
import re
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

import httpx
import pytest
import redis
from index_models import drop, opened, score_model
from player_tokens import signed
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from waiting import eventually

from laurels import demo
from laurels.access import sessions
from laurels.access.store.api_keys import EVERY_PROJECT, digest_of
from laurels.access.store.secrets import NewSecret
from laurels.activity import valkey_keys as activity
from laurels.activity.simulator import SimulationPlan
from laurels.errors import KeyTaken
from laurels.http.app import create_app
from laurels.jobs.agenda import AGENDA
from laurels.jobs.job import JobRun
from laurels.scores.submission import Submission

if TYPE_CHECKING:
    import socket

    from laurels.clock import FixedClock
    from laurels.engine import Laurels

NOON = datetime(2025, 10, 24, 12, tzinfo=UTC)
DAY = 86_400 * 1_000_000
MARK = "the-end-of-the-scenario"
# What templates of the scenario's own boards make.
NAMED = "named:"
NAMED_BOARD: dict[str, Any] = {
    "windows": [{"period": "daily", "keep": 2}],
    "groups": [["country"]],
    "keys": {"daily": f"{NAMED}{{slot}}"},
    "adopt": True,
}
COUNTRIES = {"country": "BR"}

_ARGUMENT = re.compile(rb'"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(rb"\\(x[0-9a-f]{2}|.)")
_LETTERS = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"a": b"\a", b"b": b"\b"}


def unescaped(argument: bytes) -> bytes:
    def meant(found: re.Match[bytes]) -> bytes:
        escape = found[1]
        return bytes.fromhex(escape[1:].decode()) if escape[:1] == b"x" else _LETTERS.get(escape, escape)

    return _ESCAPE.sub(meant, argument)


@dataclass
class Watch:
    """Writes down each command that a server carries out, those within functions too (`MONITOR`)."""

    client: Any
    database: int
    lines: list[bytes] = field(default_factory=list[bytes])

    def __enter__(self) -> Self:
        self._connection = self.client.connection_pool.make_connection()
        self._connection.connect()
        self._connection.send_command("MONITOR")
        assert self._connection.read_response() == b"OK"
        self._socket: socket.socket = self._connection._sock
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.client.execute_command("ECHO", MARK)
        self._thread.join(30)
        assert not self._thread.is_alive()
        self._connection.disconnect()

    def _read(self) -> None:
        with self._socket.makefile("rb") as lines:
            for line in lines:
                if MARK.encode() in line:
                    return
                self.lines.append(line)

    def commands(self) -> set[tuple[bytes, ...]]:
        own = f" [{self.database} ".encode()
        found = (line.partition(own)[2].partition(b"] ")[2] for line in self.lines)
        return {tuple(map(unescaped, _ARGUMENT.findall(line))) for line in found if line}

    def keys(self) -> set[str]:
        """By what the server says of each command."""
        touched: set[str] = set()
        for words in self.commands():
            if words[0].upper() in {b"FCALL", b"FCALL_RO"}:
                touched.update(key.decode() for key in words[3 : 3 + int(words[2])])
                continue
            try:
                touched.update(self.client.execute_command("COMMAND GETKEYS", *words))
            except redis.ResponseError:
                continue  # it takes none
        return touched

    def channels(self) -> set[str]:
        verbs = {b"PUBLISH", b"SUBSCRIBE"}
        return {words[1].decode() for words in self.commands() if words[0].upper() in verbs}


async def do_everything(laurels: Laurels, clock: FixedClock) -> None:
    await boards(laurels)
    await named_boards(laurels)
    await matches(laurels)
    await requests(laurels)
    await campuses(laurels, clock)
    await indexes(laurels)
    for _ in range(2):
        for job in AGENDA:
            await job.run(JobRun(laurels, None, told))
        clock.now += DAY
    for project, board in [("all", "plain"), ("all", "sharded"), ("all", "exact"), (NAMED[:-1], "daily")]:
        await laurels.drop(f"{project}/{board}", allow_drop="all")
    for job in AGENDA:
        await job.run(JobRun(laurels, None, told))


async def told(_: str) -> None:
    """How far a job is."""


async def boards(laurels: Laurels) -> None:
    windows = [
        {"period": "hourly"},
        {"period": "daily", "keep": 2},
        {"period": "weekly", "sum_of": "daily"},
        {"period": "rolling", "days": 3},
        {"period": "every", "seconds": 60},
        {"period": "all_time"},
    ]
    shared = {"windows": windows, "groups": [["country"]], "archive": {"snapshot": [{"period": "daily"}]}}
    definitions: dict[str, dict[str, Any]] = {
        "fed": {},
        "plain": {**shared, "dense": True, "feeds": ["all/fed"]},
        "exact": {**shared, "ties": "earliest", "score": "int64"},
        "sharded": {**shared, "shards": 2},
        "closed": {"archive": {"journal": False}},
    }
    for name, definition in definitions.items():
        await laurels.define(f"all/{name}", definition)
        scores = [
            Submission(f"m{n}", n, id=f"id-{n}", groups=COUNTRIES if "groups" in definition else None)
            for n in range(20)
        ]
        await laurels.submit_many(f"all/{name}", scores)
        await laurels.submit(f"all/{name}", "ada", 7, metadata={"n": 1})
        await read_all(laurels, f"all/{name}")
        await laurels.remove(f"all/{name}", "m1")
    await laurels.valkey.command("XADD", "lb:{all/plain}:journal", "*", "body", b"\xc1", "skipped", "")
    await laurels.journal_drained()
    letters = await laurels.operator_status.dead_letters(10)
    for letter in letters.letters:
        await laurels.operator_status.retry(letter.id)
    await laurels.journal_drained()
    for letter in (await laurels.operator_status.dead_letters(10)).letters:
        await laurels.operator_status.discard(letter.id)
    await laurels.rebuild("all/exact")
    await laurels.verify("all/sharded")
    lines = [line async for line in laurels.export(["all/exact"])]
    await laurels.import_lines(lambda: lines, into="all/copied")
    await laurels.erase("all", "m2")
    await laurels.operator_status.figures()


async def read_all(laurels: Laurels, board: str) -> None:
    page = await laurels.page(board, limit=2, change=True)
    await laurels.page(board, cursor=page.next)
    await laurels.standing(board, "m3")
    await laurels.around(board, "m3")
    await laurels.among(board, ["m3", "m4"])
    await laurels.percentile(board, 0.5)
    await laurels.distribution(board)
    await laurels.windows(board)
    for period in ("rolling_3d", "weekly") if board not in {"all/fed", "all/closed"} else ():
        await laurels.page(board, period=period, group="country=BR")
        await laurels.history(board, "m3", period=period)
    watching = laurels.watch(board)
    await anext(watching)
    await watching.aclose()


async def named_boards(laurels: Laurels) -> None:
    """Windows with names of their own, among them such as were there before."""
    await laurels.valkey.command("ZADD", key_named(laurels, f"{NAMED}2025-10-24"), 5, "ada")
    await laurels.define(f"{NAMED[:-1]}/daily", NAMED_BOARD)
    await laurels.submit(f"{NAMED[:-1]}/daily", "bob", 7, groups=COUNTRIES, metadata={"n": 1})
    await laurels.valkey.command("SET", key_named(laurels, f"{NAMED}2025-10-24:country=JP"), "text")
    with pytest.raises(KeyTaken):
        await laurels.submit(f"{NAMED[:-1]}/daily", "eve", 7, groups={"country": "JP"})


def key_named(laurels: Laurels, key: str) -> str:
    tag = NAMED.rstrip(":")
    return f"{{{tag}}}{key[len(tag) :]}" if laurels.valkey.is_cluster else key


async def matches(laurels: Laurels) -> None:
    await laurels.define("all/rated", {"rating": {"system": "elo"}})
    await laurels.match("all/rated", ["ada", "bob"], "ada", id="m1", metadata={"n": 1})
    await laurels.rebuild("all/rated")


async def requests(laurels: Laurels) -> None:
    """What HTTP adds: keys of requests, nonces, limits, sessions; and the boards of games."""
    _, secret = await laurels.keys.create(EVERY_PROJECT, ["admin"])
    _, of_players = await laurels.secrets.create("all", NewSecret("signatures"))
    transport = httpx.ASGITransport(create_app(laurels))
    headers = {"Authorization": f"Bearer {secret}"}
    async with httpx.AsyncClient(transport=transport, base_url="http://x", headers=headers) as client:
        for name in ("closed", "fed"):
            target, body = f"/v1/projects/all/boards/{name}/scores", b'{"member":"ada","score":5}'
            sent = {
                "Content-Type": "application/json",
                "Idempotency-Key": "once",
                **signed(of_players or "", target, body, at=NOON, key="once"),
            }
            answer = await client.post(target, content=body, headers=sent)
            assert answer.status_code == 200, answer.text
        for code in "dwma":
            answer = await client.post(f"/leaders/game/highscore/{code}/ada", json={"value": 5})
            assert answer.status_code == 200, answer.text
            assert (await client.get(f"/leaders/game/highscore/{code}")).status_code == 200
        for path in ("/v1/overview", "/v1/doctor", "/v1/dead-letters", "/readyz", "/metrics", "/v1/jobs"):
            answer = await client.get(path)
            assert answer.status_code == 200, (path, answer.text)
    session = await sessions.begin(laurels.valkey, digest_of(secret))
    await sessions.find(laurels.valkey, session)
    await sessions.end(laurels.valkey, session)
    await laurels.keys.create("all", ["read"])


async def campuses(laurels: Laurels, clock: FixedClock) -> None:
    await demo.play_campuses(laurels, SimulationPlan(campuses=2, users=12, days=2, events=300), seed=1)
    stranger = "7a7cbb2e-0f5c-4a0e-9c44-3d1f2f5f6a11"
    for words in (("user_id", stranger, "at", NOON.isoformat()), ("bad", "event")):
        await laurels.valkey.command("XADD", activity.HEARTBEATS, "*", *words)
    await laurels.activity.accrual.run_once()
    while await laurels.activity.rescorer.run_once():
        pass
    working = asyncio.create_task(laurels.activity.accrual.run())
    await eventually(lambda: laurels.valkey.command("EXISTS", activity.WORKERS))
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    before, clock.now = clock.now, clock.now + DAY
    await laurels.activity.finalizer.run_due(told)
    await laurels.activity.relay.run_once()
    clock.now = before


async def indexes(laurels: Laurels) -> None:
    model: Any = score_model(window="daily", group_by=["region"])
    records = create_async_engine(laurels.settings.postgres_url or "")
    try:
        async with opened(laurels, records, model) as index:
            kept: Any = index
            async with AsyncSession(records) as session, session.begin():
                session.add(model(id=1, region="asia", score=5))
            await kept.caught_up()
            await kept.rebuild()
            await kept.verify()
            await kept.leaderboard(model).top(5)
    finally:
        await drop(records)
        await records.dispose()
