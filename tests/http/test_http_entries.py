from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from httpx import AsyncClient


async def test_a_page_tells_its_window_and_its_entries(client: AsyncClient, scored: str, project: str):
    answer = await client.get(f"{scored}/entries")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == {
        "project": project,
        "board": "arcade",
        "period": "daily",
        "slot": "2025-10-24",
        "starts_at": "2025-10-24T00:00:00Z",
        "ends_at": "2025-10-25T00:00:00Z",
        "next_reset_at": "2025-10-25T00:00:00Z",
        "total": 4,
        "entries": [
            {"rank": 1, "member": "ada", "score": 300},
            {"rank": 2, "member": "eve", "score": 200},
            {"rank": 2, "member": "bob", "score": 200},
            {"rank": 4, "member": "joe", "score": 100},
        ],
        "next": None,
        "previous": None,
    }


async def test_an_all_time_window_has_no_slot_and_never_resets(client: AsyncClient, scored: str):
    page = (await client.get(f"{scored}/entries?period=all_time&slot=")).json()
    assert page["total"] == 4
    assert (page["slot"], page["starts_at"], page["ends_at"], page["next_reset_at"]) == ("", None, None, None)


async def test_pages_follow_their_cursors_from_either_end(client: AsyncClient, scored: str):
    first = (await client.get(f"{scored}/entries", params={"limit": 3})).json()
    second = (await client.get(f"{scored}/entries", params={"limit": 3, "cursor": first["next"]})).json()
    assert [entry["member"] for entry in second["entries"]] == ["joe"]
    assert second["next"] is None
    back = (await client.get(f"{scored}/entries", params={"limit": 3, "cursor": second["previous"]})).json()
    assert back["entries"] == first["entries"]
    bottom = (await client.get(f"{scored}/entries", params={"limit": 1, "from": "bottom"})).json()
    assert [entry["member"] for entry in bottom["entries"]] == ["joe"]


async def test_a_page_may_begin_at_a_rank(client: AsyncClient, scored: str):
    page = (await client.get(f"{scored}/entries?rank=3&limit=2")).json()
    assert [(entry["rank"], entry["member"]) for entry in page["entries"]] == [(2, "bob"), (4, "joe")]


async def test_a_page_of_a_group(client: AsyncClient, scored: str):
    page = (await client.get(f"{scored}/entries", params={"group": "country=JP"})).json()
    assert [(entry["rank"], entry["member"]) for entry in page["entries"]] == [(1, "eve"), (2, "joe")]


async def test_a_page_tells_the_change_since_the_window_before(client: AsyncClient, scored: str):
    for member, score in (("joe", 9), ("ada", 8)):
        submission = {"member": member, "score": score, "at": "2025-10-23T12:00:00Z"}
        assert (await client.post(f"{scored}/scores", json=submission)).status_code == 200
    page = (await client.get(f"{scored}/entries?change=true")).json()
    changes = {entry["member"]: entry["change"] for entry in page["entries"]}
    assert changes == {"ada": 1, "bob": None, "eve": None, "joe": -3}
    assert "change" not in (await client.get(f"{scored}/entries?change=false")).json()["entries"][0]


async def test_a_page_that_did_not_change_is_not_sent_again(client: AsyncClient, scored: str):
    first = await client.get(f"{scored}/entries")
    tag = first.headers["etag"]
    assert first.headers["cache-control"] == "private, no-cache"
    for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        again = await client.get(f"{scored}/entries", headers={"If-None-Match": known})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
        assert "x-request-id" in again.headers
    await client.post(f"{scored}/scores", json={"member": "joe", "score": 1000})
    changed = await client.get(f"{scored}/entries", headers={"If-None-Match": tag})
    assert changed.status_code == 200
    assert changed.headers["etag"] != tag


async def test_a_standing(client: AsyncClient, scored: str):
    answer = await client.get(f"{scored}/entries/bob")
    assert answer.json() == {
        "member": "bob",
        "score": 200,
        "rank": 2,
        "ordinal": 3,
        "percentile": 0.75,
        "total": 4,
        "dense_rank": 2,
    }
    in_group = await client.get(f"{scored}/entries/bob", params={"group": "country=BR", "period": "all_time"})
    assert (in_group.json()["rank"], in_group.json()["total"]) == (2, 2)


async def test_who_has_no_entry_is_not_found(client: AsyncClient, scored: str, project: str):
    for asked in ("nobody", "nobody/around"):
        answer = await client.get(f"{scored}/entries/{asked}")
        assert answer.status_code == 404
        expected = f"{project}/arcade: 'nobody' has no entry in the daily window 2025-10-24"
        assert answer.json()["detail"] == expected


async def test_a_neighbourhood_is_a_page(client: AsyncClient, scored: str):
    page = (await client.get(f"{scored}/entries/eve/around?above=1&below=1")).json()
    assert [(entry["rank"], entry["member"]) for entry in page["entries"]] == [
        (1, "ada"),
        (2, "eve"),
        (2, "bob"),
    ]
    assert page["total"] == 4
    assert set(page) == set((await client.get(f"{scored}/entries")).json())


async def test_friends_are_ranked_among_themselves(client: AsyncClient, scored: str):
    answer = await client.post(f"{scored}/entries/among", json={"members": ["joe", "zoe", "bob", "eve"]})
    assert answer.json() == {
        "total": 3,
        "entries": [
            {"rank": 1, "member": "eve", "score": 200, "board_rank": 2},
            {"rank": 1, "member": "bob", "score": 200, "board_rank": 2},
            {"rank": 3, "member": "joe", "score": 100, "board_rank": 4},
        ],
        "absent": ["zoe"],
    }
    in_group = await client.post(
        f"{scored}/entries/among", params={"group": "country=BR"}, json={"members": ["joe", "bob"]}
    )
    assert in_group.json()["absent"] == ["joe"]


async def test_nobody_among_themselves_is_an_empty_list(client: AsyncClient, scored: str):
    answer = await client.post(f"{scored}/entries/among", json={"members": []})
    assert answer.json() == {"total": 0, "entries": [], "absent": []}


@pytest.mark.parametrize(
    ("sent", "field"),
    [({}, "members"), ({"members": "ada"}, "members"), ({"members": ["ada", 1]}, "members[1]"), ([], "body")],
)
async def test_friends_are_a_list_of_members(client: AsyncClient, scored: str, sent: object, field: str):
    answer = await client.post(f"{scored}/entries/among", json=sent)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"].startswith(field.removesuffix("[1]"))


async def test_a_removed_member_is_out_of_every_window(client: AsyncClient, scored: str):
    removed = await client.delete(f"{scored}/entries/bob")
    assert (removed.status_code, removed.content) == (204, b"")
    for window in ("", "?period=all_time", "?group=country%3DBR"):
        assert (await client.get(f"{scored}/entries/bob{window}")).status_code == 404
    again = await client.delete(f"{scored}/entries/bob")
    assert again.status_code == 404


async def test_int64_scores_are_strings_in_every_answer(client: AsyncClient, int64_board: str):
    large = 2**53 + 1
    for member, score in (("ada", large), ("bob", 5)):
        await client.post(f"{int64_board}/scores", json={"member": member, "score": score})
    page = (await client.get(f"{int64_board}/entries")).json()
    assert [entry["score"] for entry in page["entries"]] == [str(large), "5"]
    assert (await client.get(f"{int64_board}/entries/ada")).json()["score"] == str(large)
    around = (await client.get(f"{int64_board}/entries/ada/around")).json()
    assert around["entries"] == page["entries"]
    among = (await client.post(f"{int64_board}/entries/among", json={"members": ["bob"]})).json()
    assert among["entries"][0]["score"] == "5"
    assert (await client.get(f"{int64_board}/percentile/1")).json()["score"] == str(large)
    spread = (await client.get(f"{int64_board}/distribution?buckets=1")).json()
    assert spread["buckets"] == [{"low": "5", "high": str(large), "count": 2}]


@pytest.mark.parametrize(
    ("query", "field", "detail"),
    [
        ("limit=0", "limit", "must be at least 1"),
        ("limit=1001", "limit", "must be at most 1000"),
        ("limit=many", "limit", "must be a whole number, not 'many'"),
        ("limit=", "limit", "must be a whole number, not ''"),
        ("change=perhaps", "change", "must be a boolean, not 'perhaps'"),
        ("from=middle", "from", "must be bottom or top, not 'middle'"),
        ("limit=1&limit=2", "limit", "is given more than once"),
        ("period=weekly", "period", "the board has no window 'weekly'; it has: daily, all_time"),
        ("slot=today", "slot", None),
        ("group=city%3DRio", "group", "the board is not ranked by city; its groups: country"),
        ("cursor=nonsense", "cursor", "is not from a page; start without it"),
        (
            "rank=3&from=bottom",
            "rank",
            "counts from the top, so it cannot be combined with a cursor or from=bottom",
        ),
        (
            "top=10",
            "top",
            (
                "there is no such parameter; "
                "it has: period, slot, group, limit, from, cursor, rank, change, people"
            ),
        ),
    ],
)
async def test_a_wrong_parameter_is_named(
    client: AsyncClient, scored: str, query: str, field: str, detail: str | None
):
    answer = await client.get(f"{scored}/entries?{query}")
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["field"] == field
    assert detail is None or error["detail"] == detail


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/entries/ada"),
        ("GET", "/entries/ada/around"),
        ("POST", "/entries/among"),
        ("PATCH", "/entries/ada"),
        ("DELETE", "/entries/ada"),
        ("POST", "/scores"),
        ("POST", "/scores/batch"),
        ("GET", "/windows"),
        ("GET", "/percentile/0.5"),
        ("GET", "/distribution"),
        ("PUT", ""),
        ("GET", ""),
        ("DELETE", ""),
    ],
)
async def test_every_route_refuses_parameters_that_it_does_not_have(
    client: AsyncClient, scored: str, method: str, path: str
):
    answer = await client.request(method, f"{scored}{path}?limitt=5")
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["field"] == "limitt"
    assert error["detail"].startswith("there is no such parameter; ")


async def test_a_cursor_of_another_window_is_stale(client: AsyncClient, scored: str):
    cursor = (await client.get(f"{scored}/entries?limit=1")).json()["next"]
    answer = await client.get(f"{scored}/entries", params={"period": "all_time", "cursor": cursor})
    assert answer.status_code == 422
    assert answer.json()["type"] == "/problems/stale-cursor"


async def test_a_window_past_its_keep_is_not_found(client: AsyncClient, scored: str):
    answer = await client.get(f"{scored}/entries?slot=2025-10-01")
    assert answer.status_code == 404
    assert answer.json()["detail"].endswith("the daily window 2025-10-01 is over and no longer kept")


@pytest.mark.parametrize("query", ["period=%FF", "%FF=1"])
async def test_a_query_that_is_not_utf8_is_refused(client: AsyncClient, scored: str, query: str):
    answer = await client.get(f"{scored}/entries?{query}")
    assert answer.status_code == 422
    assert answer.json()["detail"] == "the query is not percent-encoded UTF-8"
