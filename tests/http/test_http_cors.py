from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .conftest import ClientWith

PAGE = {"Origin": "https://game.example.com"}
OTHER = {"Origin": "https://other.example.com"}
ASKED = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}


async def test_without_the_setting_no_page_may_ask(client_with: ClientWith, board: str):
    client = await client_with()
    answer = await client.get(board, headers=PAGE)
    assert answer.status_code == 200
    assert "access-control-allow-origin" not in answer.headers
    assert (await client.options(board, headers={**PAGE, **ASKED})).status_code == 405


async def test_a_browser_is_told_what_a_page_may_send(client_with: ClientWith, board: str):
    client = await client_with(cors_origins="https://game.example.com, https://two.example.com")
    nobody = {"Authorization": ""}
    for path in (board, f"{board}/scores"):
        answer = await client.options(path, headers={**PAGE, **ASKED, **nobody})
        assert answer.status_code == 200
        assert answer.headers["access-control-allow-origin"] == "https://game.example.com"
        assert "POST" in answer.headers["access-control-allow-methods"]
        assert answer.headers["access-control-allow-headers"] == "authorization"
        assert answer.headers["x-request-id"]
        refused = await client.options(path, headers={**OTHER, **ASKED, **nobody})
        assert refused.status_code == 400
        assert "access-control-allow-origin" not in refused.headers


async def test_a_page_reads_answers_and_problems_alike(client_with: ClientWith, board: str):
    client = await client_with(cors_origins="https://game.example.com")
    for path, status in ((f"{board}/entries", 200), (f"{board}/entries/nobody", 404), (f"{board}-not", 404)):
        answer = await client.get(path, headers=PAGE)
        assert answer.status_code == status
        assert answer.headers["access-control-allow-origin"] == "https://game.example.com"
        exposed = answer.headers["access-control-expose-headers"].split(", ")
        assert {"ETag", "X-Request-Id", "RateLimit", "RateLimit-Policy", "Retry-After"} <= {*exposed}
        assert "Origin" in answer.headers["vary"].split(", ")
        assert answer.headers["x-content-type-options"] == "nosniff"
        unnamed = await client.get(path, headers=OTHER)
        assert "access-control-allow-origin" not in unnamed.headers
    refused = await client.get(board, headers={**PAGE, "Authorization": ""})
    assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, PAGE["Origin"])


async def test_every_origin_may_be_named(client_with: ClientWith, board: str):
    client = await client_with(cors_origins="*")
    answer = await client.get(board, headers=OTHER)
    assert answer.headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-credentials" not in answer.headers
