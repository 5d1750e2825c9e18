"""The client, the server and the examples of docs/how-to/sign-submissions.md make the same signatures."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from build_pages import find_node

from laurels.access.signing import Signed
from laurels.client import AsyncClient, Client, Submission

if TYPE_CHECKING:
    from loopback_proxy import Proxy

    from laurels.arguments import Compression

    from .conftest import Served

DOCS = Path(__file__).parents[2] / "docs" / "how-to"
PAGE = (DOCS / "sign-submissions.md").read_text()
VECTORS: dict[str, Any] = json.loads((DOCS / "signatures.json").read_text())
NAMES = [vector["name"] for vector in VECTORS["vectors"]]


def examples(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def secret(served: Served, client: Client, project: str) -> str:
    """Of a project that takes only what is signed, and has two boards."""
    for board in ("arcade", ".."):
        client.define(board, {"aggregate": "sum"})
    answer = httpx.post(
        f"{served.address}/v1/projects/{project}/secrets",
        json={"use": "signatures", "required": True},
        headers={"Authorization": f"Bearer {served.key}"},
    )
    return answer.json()["secret"]


@pytest.mark.parametrize("vector", VECTORS["vectors"], ids=NAMES)
def test_the_client_and_the_server_sign_as_the_vectors_say(vector: dict[str, str]):
    signed = Signed(
        vector["method"], vector["target"], vector["timestamp"], vector["nonce"], vector["idempotency_key"]
    )
    body = base64.b64decode(vector["body_base64"])
    assert signed.text(hashlib.sha256(body).hexdigest()) == vector["text"]
    assert signed.headers(VECTORS["secret"], body) == {
        "X-Laurels-Timestamp": vector["timestamp"],
        "X-Laurels-Nonce": vector["nonce"],
        "X-Laurels-Signature": vector["signature"],
    }


def test_no_two_vectors_have_the_same_text_or_signature():
    for name in ("text", "signature"):
        assert len({vector[name] for vector in VECTORS["vectors"]}) == len(VECTORS["vectors"])


def test_the_page_shows_the_first_vector():
    vector = VECTORS["vectors"][0]
    for line in filter(None, vector["text"].split("\n")):
        assert f"`{line}`" in PAGE


def test_the_python_example_signs_as_the_vectors_say():
    names: dict[str, Any] = {}
    exec(compile(examples("python")[0], "sign-submissions.md", "exec"), names)  # noqa: S102  # it is ours
    for vector in VECTORS["vectors"]:
        headers = names["signed"](
            VECTORS["secret"],
            vector["method"],
            vector["target"],
            base64.b64decode(vector["body_base64"]),
            vector["idempotency_key"],
            vector["timestamp"],
            vector["nonce"],
        )
        assert headers["X-Laurels-Signature"] == vector["signature"], vector["name"]


def test_the_javascript_example_signs_as_the_vectors_say(tmp_path: Path):
    check = """
        import { readFileSync } from "node:fs";
        const { secret, vectors } = JSON.parse(readFileSync(process.argv[2]));
        const found = [];
        for (const { method, target, body_base64, idempotency_key, timestamp, nonce } of vectors) {
          const about = { idempotencyKey: idempotency_key, timestamp, nonce };
          const body = new Uint8Array(Buffer.from(body_base64, "base64"));
          found.push((await signed(secret, method, target, body, about))["X-Laurels-Signature"]);
        }
        console.log(JSON.stringify(found));
    """
    printed = run_node(tmp_path, examples("js")[0] + check, str(DOCS / "signatures.json"))
    assert json.loads(printed) == [vector["signature"] for vector in VECTORS["vectors"]]


def test_the_examples_submit(
    served: Served,
    client: Client,
    project: str,
    secret: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
):
    def here(example: str) -> str:
        for written, meant in {
            "http://127.0.0.1:8000": served.address, "lk_…": served.key, "ls_…": secret, "acme": project
        }.items():  # fmt: skip
            example = example.replace(written, meant)
        return example

    python = "\n".join(here(example) for example in examples("python"))
    exec(compile(python, "sign-submissions.md", "exec"), {})  # noqa: S102  # it is ours
    assert capsys.readouterr().out == "1200\n"
    javascript = "\n".join(here(example) for example in examples("js"))
    assert run_node(tmp_path, javascript) == "2400\n"
    assert client.standing("arcade", "ada").score == 2400


def test_the_examples_sign_the_same_lines_in_the_same_order():
    """Where no compiler for C# is at hand, this holds it to the example that runs."""
    python, _ = examples("python")
    javascript, _ = examples("js")
    csharp, _ = examples("csharp")
    lines = [
        re.search(pattern, example)
        for pattern, example in (
            (r'"\\n"\.join\(\[(.+?)\]\)', python),
            (r"\[(.+?)\]\.join\(\"\\n\"\)", javascript),
            (r'string\.Join\("\\n", (.+?)\);', csharp),
        )
    ]
    signed = [re.sub(r"_(\w)", lambda found: found[1].upper(), line[1]) for line in lines if line]
    assert signed == ['"v2", method, target, timestamp, nonce, idempotencyKey, digest'] * 3
    headers = [re.findall(r'"(X-Laurels-\w+)"', example) for example in (python, javascript, csharp)]
    assert headers == [["X-Laurels-Timestamp", "X-Laurels-Nonce", "X-Laurels-Signature"]] * 3


@pytest.mark.parametrize("board", ["arcade", ".."])
@pytest.mark.parametrize("compress", [None, "gzip", "zstd"])
def test_the_client_signs_what_it_sends(
    served: Served, project: str, secret: str, board: str, compress: Compression | None
):
    with Client(served.address, key=served.key, project=project, secret=secret) as signing:
        assert signing.submit(board, "ada", 5).score == 5
        batch = (Submission("bob", 1) for _ in range(12_000))  # in three requests
        assert signing.submit_many(board, batch, compress=compress).accepted == 12_000
        assert signing.standing(board, "bob").score == 12_000


async def test_the_awaited_client_signs_too(served: Served, project: str, secret: str):
    async with AsyncClient(served.address, key=served.key, project=project, secret=secret) as signing:
        assert (await signing.submit("arcade", "ada", 5)).score == 5
        assert (await signing.submit_many("arcade", [Submission("bob", 1)])).accepted == 1


def test_behind_a_proxy_that_removes_a_prefix_what_follows_it_is_signed(
    served: Served, project: str, secret: str, proxy: Proxy
):
    proxy.removed_prefix = b"/games/laurels"
    address = f"{proxy.address}/games/laurels"
    with Client(address, key=served.key, project=project, secret=secret) as signing:
        assert signing.submit("arcade", "ada", 5).score == 5
        assert signing.submit_many("arcade", [Submission("bob", 1)]).accepted == 1
    assert all(request.startswith(b"POST /games/laurels/v1/") for request in proxy.requests)


def run_node(folder: Path, program: str, *words: str) -> str:
    file = folder / "example.mjs"
    file.write_text(program)
    ran = subprocess.run([find_node(), file, *words], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout
