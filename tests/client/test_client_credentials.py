"""Players' tokens and signatures, as the server verifies them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import httpx
import jwt
import pytest

from laurels.client import Client, Submission
from laurels.errors import BadSignature, Forbidden

if TYPE_CHECKING:
    from collections.abc import Callable

    from loopback_proxy import Proxy

    from .conftest import Served


@pytest.fixture
def make_secret(served: Served, project: str) -> Callable[..., str]:
    def make(**wanted: object) -> str:
        answer = httpx.post(
            f"{served.address}/v1/projects/{project}/secrets",
            json=wanted,
            headers={"Authorization": f"Bearer {served.key}"},
        )
        assert answer.status_code == 201, answer.text
        return answer.json()["secret"]

    return make


def test_a_player_submits_for_itself_alone(
    served: Served, client: Client, project: str, make_secret: Callable[..., str]
):
    client.define("open", {"player_writes": True})
    claims: dict[str, Any] = {
        "aud": "laurels", "exp": int(time.time()) + 600, "project": project, "sub": "ada"
    }  # fmt: skip
    token = jwt.encode(claims, make_secret(use="players"), "HS256")
    with Client(served.address, token=token, project=project) as player:
        assert player.submit("open", "ada", 5).rank == 1
        assert player.standing("open", "ada").score == 5
        with pytest.raises(Forbidden):
            player.submit("open", "bob", 5)
        with pytest.raises(Forbidden):
            player.drop("open")


def test_what_must_be_signed_is_signed(
    served: Served, client: Client, project: str, proxy: Proxy, board: str, make_secret: Callable[..., str]
):
    secret = make_secret(use="signatures", required=True)
    with pytest.raises(BadSignature):
        client.submit(board, "ada", 5)
    pauses: list[float] = []
    with Client(
        proxy.address, key=served.key, project=project, secret=secret, sleep=pauses.append
    ) as signing:
        proxy.faults.extend(["after", "halfway"])  # the nonce of a try whose answer was lost is used up
        assert signing.submit(board, "ada", 5).score == 5
        given = [Submission(member, 1) for member in ("bob", "eve")]
        proxy.faults.append("after")
        assert signing.submit_many(board, given, compress="zstd").accepted == 2
        assert signing.set_metadata(board, "ada", {"level": 8}).entries == 2
    assert len(pauses) == 3
    assert [(entry.member, entry.score) for entry in client.entries(board)] == [
        ("ada", 5), ("eve", 1), ("bob", 1)
    ]  # fmt: skip
    with (
        Client(served.address, key=served.key, project=project, secret="another") as forging,
        pytest.raises(BadSignature),
    ):
        forging.submit(board, "ada", 5)
