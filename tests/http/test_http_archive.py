from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from laurels.boards.keys import BoardRef
from laurels.jobs.agenda import AGENDA

if TYPE_CHECKING:
    from httpx import AsyncClient

    from laurels.clock import FixedClock
    from laurels.engine import Laurels

    from .conftest import MakeKey

DAY = timedelta(days=1)


@pytest.fixture
async def archived(client: AsyncClient, boards: str, laurels: Laurels, clock: FixedClock) -> str:
    """A daily board of int64 scores that keeps one window: yesterday's is archived, with three members."""
    definition = {
        "score": "int64",
        "windows": [{"period": "daily", "keep": 1}],
        "archive": {"snapshot": [{"period": "daily"}]},
    }
    path = f"{boards}/archived"
    assert (await client.put(path, json=definition)).status_code == 201
    for member, score in (("ada", 2**63 - 1), ("x/y", 7), ("bob", 7)):
        await client.post(f"{path}/scores", json={"member": member, "score": str(score)})
    clock.advance(DAY)
    await take_snapshots(laurels, path)
    return path


async def take_snapshots(laurels: Laurels, path: str) -> None:
    """Of this board alone: others of the session have clocks of their own."""
    _, _, _, project, _, board = path.split("/")
    stored = await laurels.store.get(project, board)
    assert stored is not None
    await laurels.snapshot_taker.take_of(BoardRef(project, board), stored.id)


async def test_a_history_tells_every_window_that_ended(client: AsyncClient, archived: str):
    answer = await client.get(f"{archived}/entries/ada/history", params={"period": "daily"})
    assert answer.json() == {
        "member": "ada",
        "period": "daily",
        "windows": [
            {
                "slot": "2025-10-24",
                "starts_at": "2025-10-24T00:00:00Z",
                "ends_at": "2025-10-25T00:00:00Z",
                "score": str(2**63 - 1),
                "rank": 1,
                "total": 3,
                "source": "snapshot",
            }
        ],
        "next": None,
    }
    assert answer.headers["etag"]


async def test_a_history_is_of_any_member(client: AsyncClient, archived: str):
    answer = await client.get(f"{archived}/entries/x%2Fy/history")
    assert (answer.json()["member"], len(answer.json()["windows"])) == ("x/y", 1)


async def test_a_window_past_its_keep_is_paged_from_its_snapshot(client: AsyncClient, archived: str):
    where: dict[str, Any] = {"slot": "2025-10-24"}
    page = (await client.get(f"{archived}/entries", params={**where, "limit": 2})).json()
    assert [(entry["rank"], entry["score"]) for entry in page["entries"]] == [(1, str(2**63 - 1)), (2, "7")]
    rest = (await client.get(f"{archived}/entries", params={"cursor": page["next"]})).json()
    assert [(entry["rank"], entry["member"]) for entry in rest["entries"]] == [(2, "bob")]
    standing = (await client.get(f"{archived}/entries/bob", params=where)).json()
    assert (standing["rank"], standing["ordinal"], standing["total"]) == (2, 3, 3)
    around = (await client.get(f"{archived}/entries/ada/around", params={**where, "below": 1})).json()
    assert [entry["member"] for entry in around["entries"]] == ["ada", "x/y"]


async def test_snapshots_are_listed_and_read(client: AsyncClient, archived: str):
    listed = (await client.get(f"{archived}/snapshots", params={"period": "daily"})).json()
    (snapshot,) = listed["snapshots"]
    assert (snapshot["slot"], snapshot["total"], snapshot["kept"]) == ("2025-10-24", 3, 3)
    page = (await client.get(f"{archived}/snapshots/{snapshot['id']}", params={"limit": 2})).json()
    assert page["snapshot"] == snapshot
    assert page["entries"][0] == {"rank": 1, "member": "ada", "score": str(2**63 - 1)}
    rest = await client.get(f"{archived}/snapshots/{snapshot['id']}", params={"cursor": page["next"]})
    assert [entry["member"] for entry in rest.json()["entries"]] == ["bob"]
    assert (await client.get(f"{archived}/snapshots/nonsense")).status_code == 404
    assert (await client.get(f"{archived}/snapshots", params={"cursor": "nonsense"})).status_code == 422


async def test_jobs_are_shown_to_keys_of_every_project_alone(
    client: AsyncClient, project: str, make_key: MakeKey
):
    jobs = (await client.get("/v1/jobs")).json()["jobs"]
    assert [job["name"] for job in jobs] == [job.name for job in AGENDA]
    own = {"Authorization": f"Bearer {await make_key(project, 'admin')}"}
    assert (await client.get("/v1/jobs", headers=own)).status_code == 403
    assert (await client.post("/v1/jobs/snapshots/run", headers=own)).status_code == 403
    reading = {"Authorization": f"Bearer {await make_key('*', 'read')}"}
    assert (await client.get("/v1/jobs", headers=reading)).status_code == 403


async def test_a_job_can_be_asked_for(client: AsyncClient):
    answer = await client.post("/v1/jobs/retention/run")
    assert (answer.status_code, answer.json()["name"]) == (202, "retention")
    assert answer.json()["requested_at"] is not None
    assert (await client.post("/v1/jobs/nonsense/run")).status_code == 404


async def test_metrics_tell_of_jobs(client: AsyncClient, laurels: Laurels):
    await laurels.request_job("retention")
    assert (
        'laurels_job_runs_total{job="retention",outcome="failed"} 0.0' in (await client.get("/metrics")).text
    )


async def test_archived_windows_have_people_on_request(client: AsyncClient, archived: str):
    await client.put(f"{archived.partition('/boards/')[0]}/people/ada", json={"name": "Ada"})
    (taken,) = (await client.get(f"{archived}/snapshots")).json()["snapshots"]
    for path, where in (
        (f"{archived}/snapshots/{taken['id']}", {}),
        (f"{archived}/entries", {"slot": "2025-10-24"}),
    ):
        named = (await client.get(path, params={**where, "people": "true"})).json()["entries"]
        assert [each.get("person") for each in named] == [{"name": "Ada", "avatar_url": None}, None, None]
        assert not any("person" in each for each in (await client.get(path, params=where)).json()["entries"])
