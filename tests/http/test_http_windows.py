from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from httpx import AsyncClient


async def test_windows_are_listed_newest_first(client: AsyncClient, scored: str):
    submission = {"member": "ada", "score": 1, "at": "2025-10-23T12:00:00Z"}
    await client.post(f"{scored}/scores", json=submission)
    answer = await client.get(f"{scored}/windows")
    assert answer.json() == {
        "windows": [
            {
                "period": "daily",
                "slot": "2025-10-24",
                "starts_at": "2025-10-24T00:00:00Z",
                "ends_at": "2025-10-25T00:00:00Z",
                "entries": 4,
            },
            {
                "period": "daily",
                "slot": "2025-10-23",
                "starts_at": "2025-10-23T00:00:00Z",
                "ends_at": "2025-10-24T00:00:00Z",
                "entries": 1,
            },
            {"period": "all_time", "slot": "", "starts_at": None, "ends_at": None, "entries": 4},
        ]
    }


async def test_windows_of_one_period_and_group(client: AsyncClient, scored: str):
    answer = await client.get(
        f"{scored}/windows", params={"period": "daily", "group": "country=JP", "limit": 1}
    )
    assert [(each["slot"], each["entries"]) for each in answer.json()["windows"]] == [("2025-10-24", 2)]


@pytest.mark.parametrize(("p", "score"), [("1", 300), ("0.75", 200), ("0.5", 200), ("0", 100)])
async def test_the_score_at_a_percentile(client: AsyncClient, scored: str, p: str, score: int):
    answer = await client.get(f"{scored}/percentile/{p}")
    assert answer.json() == {"percentile": float(p), "score": score, "total": 4}


@pytest.mark.parametrize("p", ["half", "-1", "1.1", "nan", "inf", "0.1234567"])
async def test_a_percentile_is_a_share(client: AsyncClient, scored: str, p: str):
    answer = await client.get(f"{scored}/percentile/{p}")
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "p"


async def test_an_empty_window_has_no_percentile(client: AsyncClient, board: str):
    assert (await client.get(f"{board}/percentile/0.5")).status_code == 404


async def test_a_histogram_of_the_scores(client: AsyncClient, scored: str):
    answer = await client.get(f"{scored}/distribution?buckets=2")
    assert answer.json() == {
        "total": 4,
        "buckets": [{"low": 100, "high": 200.0, "count": 1}, {"low": 200.0, "high": 300, "count": 3}],
    }


async def test_an_empty_histogram(client: AsyncClient, board: str):
    assert (await client.get(f"{board}/distribution")).json() == {"total": 0, "buckets": []}


@pytest.mark.parametrize(
    "path", ["windows", "distribution", "percentile/0.5", "entries/ada", "entries/ada/around"]
)
async def test_every_read_is_tagged(client: AsyncClient, scored: str, path: str):
    first = await client.get(f"{scored}/{path}")
    again = await client.get(f"{scored}/{path}", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
