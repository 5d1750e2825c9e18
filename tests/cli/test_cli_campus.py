"""`laurels demo campus`, and that a running service counts what comes into the streams."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING
from uuid import uuid4

import httpx
from cli_processes import run
from waiting import until

from laurels.activity.valkey_keys import HEARTBEATS
from laurels.engine import Laurels

if TYPE_CHECKING:
    from cli_processes import Served


def processed(served: Served) -> dict[str, float]:
    text = httpx.get(f"{served.url}/metrics").text
    found = re.findall(r'^lb_events_processed_total{stream="(.+?)"} (\S+)$', text, re.MULTILINE)
    return {stream: float(count) for stream, count in found}


def test_campuses_are_invented_the_same_for_the_same_seed(served: Served):
    before = sum(processed(served).values())
    wanted = ("--campuses", "2", "--users", "20", "--days", "1", "--events", "200", "--seed", "3")
    played = run("demo", "campus", *wanted, "--json", data_dir=served.data_dir).document
    assert played["plan"] == {"campuses": 2, "users": 20, "days": 1, "events": 200}
    assert sum(processed(served).values()) == before + played["events"]
    again = run("demo", "campus", *wanted, data_dir=served.data_dir).output
    assert all(campus["name"] in again and campus["id"] in again for campus in played["campuses"])


def test_refused_match_is_reported_in_one_line(served: Served):
    complaint = run("demo", "campus", "--users", "2", data_dir=served.data_dir).complaint
    assert complaint == "users: must be at least two a campus"


def test_running_service_counts_new_events(served: Served):
    async def beat() -> None:
        async with Laurels(data_dir=served.data_dir, jobs=False) as laurels:
            await laurels.valkey.command("XADD", HEARTBEATS, "*", "user_id", str(uuid4()))

    before = processed(served)[HEARTBEATS]
    asyncio.run(beat())
    until(lambda: processed(served)[HEARTBEATS] == before + 1)
