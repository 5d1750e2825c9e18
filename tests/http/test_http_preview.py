"""A definition is shown what it would make, and nothing is made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from httpx import AsyncClient

    from laurels.engine import Laurels

    from .conftest import MakeKey


async def test_windows_and_keys_are_those_that_the_board_then_has(
    client: AsyncClient, boards: str, laurels: Laurels, project: str
):
    definition: dict[str, Any] = {
        "windows": [{"period": "daily", "keep": 3}, {"period": "weekly"}, {"period": "all_time"}],
        "groups": [["country"], ["region", "city"]],
        "timezone": "Asia/Tokyo",
    }
    answer = await client.post(f"{boards}/new/preview", json=definition)
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert (told["is_new"], told["changed"], told["conflict"]) == (True, [], None)
    assert told["definition"]["timezone"] == "Asia/Tokyo"
    daily, weekly, all_time = told["windows"]
    assert (daily["period"], daily["slot"], daily["next_slot"]) == ("daily", "2025-10-24", "2025-10-25")
    assert (daily["starts_at"], daily["ends_at"]) == ("2025-10-23T15:00:00Z", "2025-10-24T15:00:00Z")
    assert [each["group"] for each in daily["keys"]] == ["", "country=…", "region=…,city=…"]
    assert weekly["slot"] == "2025-w43"
    assert (all_time["slot"], all_time["ends_at"], all_time["next_slot"]) == ("", None, None)
    assert (await client.get(f"{boards}/new")).status_code == 404
    # Defined and used, it has these very keys.
    await client.put(f"{boards}/new", json=definition)
    await client.post(
        f"{boards}/new/scores",
        json={"member": "ada", "score": 1, "groups": {"country": "BR", "region": "asia", "city": "tokyo"}},
    )
    for window in told["windows"]:
        for each, value in zip(window["keys"], ("", "BR", "asia"), strict=True):
            key = each["key"].replace("city=…", "city=tokyo").replace("…", value)
            assert await laurels.valkey.command("EXISTS", key), key


async def test_templates_are_filled_in(client: AsyncClient, boards: str):
    definition = {
        "windows": [{"period": "weekly"}],
        "groups": [["country"]],
        "keys": {"weekly": "lb:{board}:{slot}", "weekly:country": "lb:{board}:{slot}:in:{group.country}"},
    }
    told = (await client.post(f"{boards}/templated/preview", json=definition)).json()
    assert [each["key"] for each in told["windows"][0]["keys"]] == [
        "lb:templated:2025-w43",
        "lb:templated:2025-w43:in:…",
    ]


async def test_what_is_wrong_is_said_at_its_field(client: AsyncClient, boards: str):
    wrong = {"windows": [{"period": "daily", "keep": 0}], "timezone": "Mars", "feeds": ["nobody/there"]}
    answer = await client.post(f"{boards}/new/preview", json=wrong)
    assert answer.status_code == 422
    assert [each["field"] for each in answer.json()["errors"]] == ["windows[0].keep", "timezone"]
    fed = await client.post(f"{boards}/new/preview", json={"feeds": ["nobody/there"]})
    assert [each["field"] for each in fed.json()["errors"]] == ["feeds[0]"]


async def test_what_entries_forbid_is_told_before_it_is_tried(client: AsyncClient, scored: str):
    in_force = (await client.get(scored)).json()["definition"]
    changed = {**in_force, "aggregate": "sum", "player_writes": True}
    told = (await client.post(f"{scored}/preview", json=changed)).json()
    assert (told["is_new"], told["changed"]) == (False, ["aggregate", "player_writes"])
    refused = await client.put(scored, json=changed)
    assert refused.status_code == 409
    assert told["conflict"] == refused.json()["detail"]
    assert (await client.get(scored)).json()["definition"] == in_force
    allowed = (await client.post(f"{scored}/preview", json={**in_force, "player_writes": True})).json()
    assert (allowed["changed"], allowed["conflict"]) == (["player_writes"], None)


async def test_another_projects_board_is_not_fed_in_a_preview_either(
    client: AsyncClient, boards: str, project: str, make_key: MakeKey
):
    own = {"Authorization": f"Bearer {await make_key(project, 'admin')}"}
    answer = await client.post(f"{boards}/new/preview", json={"feeds": ["other/board"]}, headers=own)
    assert answer.status_code == 403
