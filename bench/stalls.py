"""How long our commands hold Valkey at a million members at most: SLOWLOG over all operations.

A shared machine preempts processes and slows their memory down now and then, and any command that runs at
that moment looks long. So a control runs beside the work: plain `ZADD`s to another sorted set, which grows
with the board. How often the control exceeds the limit, for each second that it runs, is due to the machine
and Valkey. Our commands must not exceed it more often.

The control is as long as the mean call beside it, up to 3 ms of CPU time, and Python is as busy while it
runs. Both matter: on two shared cores a mere loop of 4 ms exceeded the limit 3.5 times a second, a loop of
1.7 ms 0.8 times, and the first 11.7 times beside a busy process.

Expired windows and a dropped board are deleted as the jobs do it. Another board takes batches until all
is freed, which shows the effect on other calls. A call holds Valkey for as long as it runs there.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any

from bench.ground import FOUR_WINDOWS, Ground, ground, member
from bench.results import Results, Row
from laurels import Submission

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Iterator

LIMIT = 0.010
STEPS = 25
PASSING_WINDOWS = [each if each["period"] == "all_time" else {**each, "keep": 1} for each in FOUR_WINDOWS]
BOARDS = {
    "plain": {"windows": PASSING_WINDOWS},
    "exact": {"windows": PASSING_WINDOWS, "ties": "earliest"},
    "sum": {
        "windows": [{"period": "daily", "keep": 1}, {"period": "weekly", "sum_of": "daily", "keep": 1}],
        "aggregate": "sum",
    },
    "dense": {"windows": PASSING_WINDOWS, "dense": True},
    "rolling": {"windows": [{"period": "rolling", "days": 30, "keep": 1}], "aggregate": "sum"},
}
OTHER = "bench/other"
CONTROL_KEY = "control"
# ARGV: a seed, how many members there are to choose from, how many entries are written.
CONTROL = """
math.randomseed(tonumber(ARGV[1]))
local members, left = tonumber(ARGV[2]), tonumber(ARGV[3])
while left > 0 do
  local entries = {}
  for i = 1, math.min(left, 500) do
    entries[2 * i - 1] = math.random(0, 999999)
    entries[2 * i] = string.format('m%07d', math.random(0, members - 1))
  end
  server.call('ZADD', KEYS[1], unpack(entries))
  left = left - 500
end
"""
CONTROL_SHARE = 0.5
# In seconds: a longer control would excuse our longer calls.
LONGEST_CONTROL = 0.003
# The entries of a call that measures the control's speed first: some milliseconds.
MANY_ENTRIES = 2_000
# The least probability of our long commands, if the control's are as frequent.
CHANCE = 0.01


@dataclass
class Held:
    """The commands that held Valkey: their number, total time, longest, and how many exceeded the limit; and
    the CPU time of Valkey and of Python meanwhile.
    """

    commands: int = 0
    seconds: float = 0.0
    cpu: float = 0.0
    client_cpu: float = 0.0
    longest: float = 0.0
    over: int = 0

    def add(self, other: Held) -> None:
        self.commands += other.commands
        self.seconds += other.seconds
        self.cpu += other.cpu
        self.client_cpu += other.client_cpu
        self.longest = max(self.longest, other.longest)
        self.over += other.over

    def __str__(self) -> str:
        longest = f"{1000 * self.longest:.1f}" if self.over else "10"
        return f"{1000 * self.seconds / max(self.commands, 1):.2f} ms a call, ≤ {longest} ms"

    @property
    def over_a_second(self) -> float:
        return self.over / self.seconds if self.seconds else 0.0


class Watch:
    """Measures Valkey's commands between two moments."""

    def __init__(self, raw: Any, members: int) -> None:  # noqa: ANN401  # redis-py types its client only in part
        """`members`: how many the control's sorted set reaches."""
        self._raw = raw
        self._members = members
        self._seeds = count()
        raw.config_set("slowlog-max-len", 100_000)
        raw.config_set("slowlog-log-slower-than", int(LIMIT * 1e6))
        raw.config_set("latency-tracking", "no")
        self._entries_a_second = self._measure_entries()

    def start(self) -> None:
        self._raw.slowlog_reset()
        self._raw.config_resetstat()
        self._cpu, self._client_cpu = self._processor_time(), time.process_time()

    def stop(self) -> Held:
        client_cpu = time.process_time() - self._client_cpu
        cpu = self._processor_time() - self._cpu
        stats = {
            name: each
            for name, each in self._raw.info("commandstats").items()
            if not name.startswith(("cmdstat_slowlog", "cmdstat_config", "cmdstat_info", "cmdstat_function"))
        }
        slow = [each["duration"] / 1e6 for each in self._raw.slowlog_get(100_000) if is_ours(each["command"])]
        # Commands within a function are counted too; only the function itself holds Valkey.
        outer = {
            name: each for name, each in stats.items() if name.startswith(("cmdstat_fcall", "cmdstat_eval"))
        }
        chosen = outer or stats
        return Held(
            sum(each["calls"] for each in chosen.values()),
            sum(each["usec"] for each in chosen.values()) / 1e6,
            cpu,
            client_cpu,
            max(slow, default=0.0),
            len(slow),
        )

    def control(self, like: Held, seconds: float) -> Held:
        """Runs the control: calls as long as the mean of `like`, with Python as busy as it was then."""
        calls = max(like.commands, 1)
        entries = max(1, int(self._entries_a_second * min(like.cpu / calls, LONGEST_CONTROL)))
        connection = self._raw.connection_pool.get_connection()
        self.start()
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            connection.send_command(
                "EVAL", CONTROL, 1, CONTROL_KEY, next(self._seeds), self._members, entries
            )
            be_busy(like.client_cpu / calls)
            connection.read_response()
        held = self.stop()
        self._raw.connection_pool.release(connection)
        if held.cpu:  # a larger set takes longer
            self._entries_a_second = entries * held.commands / held.cpu
        return held

    def reset(self) -> None:
        """Empties the control's set for a new board. It does so in pieces, since a large free makes the next
        calls long (decision 0026).
        """
        while self._raw.zremrangebyrank(CONTROL_KEY, 0, 999):
            pass

    def _measure_entries(self) -> float:
        before = self._processor_time()
        for _ in range(50):
            self._raw.eval(CONTROL, 1, CONTROL_KEY, next(self._seeds), self._members, MANY_ENTRIES)
        return 50 * MANY_ENTRIES / (self._processor_time() - before)

    def _processor_time(self) -> float:
        cpu = self._raw.info("cpu")
        return cpu["used_cpu_user_main_thread"] + cpu["used_cpu_sys_main_thread"]


async def run(members: int) -> Results:
    rows: list[Row] = []
    ours, control = Held(), Held()
    async with ground(datetime(2025, 10, 24, 12, tzinfo=UTC)) as here:
        watch = Watch(here.raw, members)
        await here.laurels.define(OTHER, {"windows": FOUR_WINDOWS})
        for name, definition in BOARDS.items():
            board = f"bench/{name}"
            await here.laurels.define(board, definition)
            watch.reset()
            of_board, longest = Held(), ""
            for what, steps in work(here, board, members).items():
                held = Held()
                for step in steps:
                    watch.start()
                    await step
                    done = watch.stop()
                    held.add(done)
                    control.add(watch.control(done, done.seconds * CONTROL_SHARE))
                if held.longest >= of_board.longest:
                    longest = what
                of_board.add(held)
            ours.add(of_board)
            rows.append(Row(name, str(of_board), f"longest: {longest}" if of_board.over else ""))
    return Results([*rows, as_rare(ours, control)])


def as_rare(ours: Held, control: Held) -> Row:
    """Our commands must exceed the limit no more often than the control, except by chance."""
    likely = likelihood(ours, control)
    return Row(
        "calls over 10 ms",
        f"{ours.over_a_second:.2f}/s",
        f"control: {control.over_a_second:.2f}/s",
        ours.over_a_second / control.over_a_second if control.over else None,
        f"as rare: p = {likely:.2f} ≥ {CHANCE:g}",
        likely >= CHANCE,
    )


def likelihood(ours: Held, control: Held) -> float:
    """The probability that at least as many of all long commands are ours, if both are as frequent."""
    over, share = ours.over + control.over, ours.seconds / (ours.seconds + control.seconds)
    return sum(
        math.comb(over, count) * share**count * (1 - share) ** (over - count)
        for count in range(ours.over, over + 1)
    )


def work(here: Ground, board: str, members: int) -> dict[str, Iterable[Coroutine[Any, Any, None]]]:
    """All operations on a board, in steps that are shorter than the machine's noisy periods."""
    return {
        "fill": (fill(here, board, part) for part in slices(members)),
        "batches": (batch(here, board, members, number) for number in range(STEPS)),
        "singles": (singles(here, board, members, number) for number in range(STEPS)),
        "reads": (reads(here, board, number) for number in range(0, members, members // STEPS)),
        "distribution": [distribution(here, board)],
        "removals": [removals(here, board)],
        "day change": [day_change(here, board)],
        "expiry": [expiry(here)],
        "drop": [drop(here, board)],
    }


def slices(members: int) -> Iterator[range]:
    size = members // STEPS
    return (range(first, min(first + size, members)) for first in range(0, members, size))


def be_busy(seconds: float) -> None:
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def is_ours(command: bytes) -> bool:
    return not command.startswith((b"SLOWLOG", b"CONFIG", b"FUNCTION", b"INFO"))


async def fill(here: Ground, board: str, members: range) -> None:
    chosen = random.Random(members.start)  # noqa: S311  # data, not secrets
    await here.laurels.submit_many(
        board, [Submission(member(i), chosen.randrange(1_000_000)) for i in members]
    )


async def batch(here: Ground, board: str, members: int, number: int) -> None:
    chosen = random.Random(number)  # noqa: S311  # data, not secrets
    submissions = [
        Submission(member(chosen.randrange(members)), chosen.randrange(9_000_000)) for _ in range(1000)
    ]
    await here.laurels.submit_many(board, submissions)


async def singles(here: Ground, board: str, members: int, number: int) -> None:
    """Submits single scores, many at the same time."""
    chosen = random.Random(-1 - number)  # noqa: S311  # data, not secrets
    submits = (
        here.laurels.submit(board, member(chosen.randrange(members)), chosen.randrange(9_000_000))
        for _ in range(1000)
    )
    await asyncio.gather(*submits)


async def reads(here: Ground, board: str, number: int) -> None:
    await here.laurels.standing(board, member(number))
    await here.laurels.page(board, limit=1000, rank=number + 1)
    await here.laurels.among(board, [member(i) for i in range(number, number + 1000)])


async def distribution(here: Ground, board: str) -> None:
    await here.laurels.distribution(board, 1000)


async def removals(here: Ground, board: str) -> None:
    for number in range(100):
        await here.laurels.remove(board, member(number))


async def day_change(here: Ground, board: str) -> None:
    here.clock.advance(timedelta(days=1))
    await here.laurels.submit(board, member(7), 5)
    await here.laurels.page(board)
    here.clock.advance(timedelta(days=1))
    await here.laurels.page(board)


async def expiry(here: Ground) -> None:
    """All windows of the board expire at once, except the all-time one."""
    here.clock.advance(timedelta(days=70))
    await beside_others(here, sweep(here))


async def drop(here: Ground, board: str) -> None:
    async def dropped() -> None:
        await here.laurels.drop(board, allow_drop="all")
        await here.laurels.maintenance.empty_discarded()

    await beside_others(here, dropped())


async def sweep(here: Ground) -> None:
    """Sweeps as the jobs do."""

    async def tell(_what: str) -> None:
        pass

    await here.laurels.maintenance.sweep(tell)
    await here.laurels.maintenance.empty_discarded()


async def beside_others(here: Ground, work: Coroutine[Any, Any, None]) -> None:
    """Submits to another board during the work, and until everything is freed."""
    doing = asyncio.create_task(work)
    while not doing.done() or is_freeing(here):
        some = [Submission(member(i), random.random()) for i in range(200)]  # noqa: S311  # data, not secrets
        await here.laurels.submit_many(OTHER, some)
    await doing


def is_freeing(here: Ground) -> bool:
    return bool(here.raw.info("memory")["lazyfree_pending_objects"])
