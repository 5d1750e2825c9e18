from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pytest

from laurels import errors
from laurels.errors import LaurelsError, OutcomeUnknown, StartupError, Unavailable
from laurels.http.problems import BY_KIND, EXPLANATIONS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from httpx import AsyncClient, Response

    from laurels.engine import Laurels

    from .conftest import Logged

JSON = {"Content-Type": "application/json"}


def problem_of(answer: Response) -> dict[str, Any]:
    """The problem, if it has the form that every one has."""
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    required = {"type", "title", "status", "detail", "instance", "request_id"}
    assert required <= problem.keys() <= required | {"errors", "checks"}
    kind = BY_KIND[problem["type"].removeprefix("/problems/")]
    assert (problem["title"], problem["status"]) == (kind.title, kind.status)
    assert problem["status"] == answer.status_code
    assert problem["request_id"] == answer.headers["x-request-id"]
    assert problem["instance"] == answer.request.url.raw_path.decode().partition("?")[0]
    return problem


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
@pytest.mark.parametrize("path", ["/nothing", "/v1/projects/", "/v1/nothing", "/v1/projects/a/b/c", "/v2"])
async def test_an_unknown_route_is_a_problem(client: AsyncClient, method: str, path: str):
    problem = problem_of(await client.request(method, path))
    assert problem["type"] == "/problems/not-found"
    assert problem["detail"] == f"there is no {method} {path}"


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", "/v1/projects", "GET, HEAD"),
        ("PATCH", "/v1/projects/a/boards/b", "DELETE, GET, HEAD, PUT"),
        ("GET", "/v1/projects/a/boards/b/scores", "POST"),
        ("PUT", "/v1/projects/a/boards/b/entries/ada", "DELETE, GET, HEAD, PATCH"),
        ("DELETE", "/v1/projects/a/boards/b/entries", "GET, HEAD"),
        ("PUT", "/v1/projects/a/boards/b/entries/among", "DELETE, GET, HEAD, PATCH, POST"),
        ("POST", "/healthz", "GET, HEAD"),
        ("POST", "/", "GET, HEAD"),
    ],
)
async def test_a_method_that_a_route_lacks_is_answered_with_those_it_has(
    client: AsyncClient, method: str, path: str, allowed: str
):
    answer = await client.request(method, path)
    problem = problem_of(answer)
    assert answer.status_code == 405
    assert answer.headers["allow"] == allowed
    assert problem["detail"] == f"there is no {method} {path}; this path has {allowed}"


@pytest.mark.parametrize(
    ("sent", "detail"),
    [
        (b"", "the body is empty: send JSON"),
        (b"{", "Input data was truncated"),
        (b'{"member":"ada","score":NaN}', "JSON is malformed: invalid character (byte 24)"),
        (b'{"member":"ada","score":Infinity}', "JSON is malformed: invalid character (byte 24)"),
        (b'{"member":"ada","score":1}}', "JSON is malformed: trailing characters (byte 27)"),
        (b'{"member":"\xff","score":1}', "not UTF-8"),
        (b"\xff\xfe{\x00}\x00", None),
        (b'{"member":"ada","score":1,"metadata":' + b'{"a":' * 50_000, "nested too deeply"),
        (b'{"member":"ada","score":1,"metadata":{"a":' + b"[" * 50_000, "nested too deeply"),
        (b'{"member":"\\ud800","score":1}', None),
        (b"member=ada&score=1", None),
    ],
)
@pytest.mark.parametrize("path", ["PUT ", "POST /scores", "POST /entries/among"])
async def test_a_body_that_is_not_json_is_malformed(
    client: AsyncClient, board: str, path: str, sent: bytes, detail: str | None
):
    method, _, rest = path.partition(" ")
    problem = problem_of(await client.request(method, f"{board}{rest}", content=sent, headers=JSON))
    assert problem["type"] in {"/problems/malformed", "/problems/invalid-input"}
    if rest == "/scores":
        assert problem["type"] == "/problems/malformed"
        assert detail is None or problem["detail"] == detail


@pytest.mark.parametrize(
    "media_type", ["text/plain", "application/x-www-form-urlencoded", "application/x-ndjson"]
)
@pytest.mark.parametrize("path", ["PUT ", "POST /scores", "POST /entries/among"])
async def test_a_body_of_another_media_type_is_not_understood(
    client: AsyncClient, board: str, path: str, media_type: str
):
    method, _, rest = path.partition(" ")
    headers = {"Content-Type": f"{media_type}; charset=utf-8"}
    answer = await client.request(method, f"{board}{rest}", content=b"{}", headers=headers)
    problem = problem_of(answer)
    assert answer.status_code == 415
    assert problem["detail"] == f"send Content-Type: application/json, not {media_type}"


async def test_a_batch_of_another_media_type_is_not_understood(client: AsyncClient, board: str):
    answer = await client.post(f"{board}/scores/batch", content=b"a,b", headers={"Content-Type": "text/csv"})
    assert problem_of(answer)["detail"] == (
        "send Content-Type: application/json or application/x-ndjson, not text/csv"
    )


async def test_json_may_have_a_charset_or_no_media_type(client: AsyncClient, board: str):
    sent = b'{"member":"ada","score":1}'
    for headers in ({}, {"Content-Type": "Application/JSON; charset=UTF-8"}):
        answer = await client.post(f"{board}/scores", content=sent, headers=headers)
        assert answer.status_code == 200


@pytest.mark.parametrize("path", ["PUT ", "POST /scores", "POST /entries/among"])
async def test_a_body_beyond_1_mib_is_too_large(client: AsyncClient, board: str, path: str):
    method, _, rest = path.partition(" ")

    async def pieces() -> AsyncIterator[bytes]:
        for number in range(1000):
            assert number < 10, "more was read than has to be"
            yield b" " * 200_000

    unannounced = await client.request(method, f"{board}{rest}", content=pieces(), headers=JSON)
    assert problem_of(unannounced)["detail"] == "the body has more than 1048576 bytes"
    announced = await client.request(method, f"{board}{rest}", content=b" " * (2**20 + 1), headers=JSON)
    assert announced.status_code == 413
    assert problem_of(announced)["detail"] == "the body has 1048577 bytes; at most 1048576 are read"


class Failing(Protocol):
    def __call__(self, operation: str, error: Exception) -> None: ...


@pytest.fixture
def failing(laurels: Laurels, monkeypatch: pytest.MonkeyPatch) -> Failing:
    """Lets an operation of the engine fail."""

    def let_fail(operation: str, error: Exception) -> None:
        async def fail(*_: object, **__: object) -> None:
            raise error

        monkeypatch.setattr(laurels, operation, fail)

    return let_fail


@pytest.mark.parametrize(("operation", "request_line"), [("windows", "GET /windows"), ("drop", "DELETE ")])
async def test_an_error_that_nobody_foresaw_tells_nothing_but_its_request(
    client: AsyncClient, board: str, failing: Failing, logged: Logged, *, operation: str, request_line: str
):
    failing(operation, RuntimeError("the secret cause"))
    method, _, path = request_line.partition(" ")
    answer = await client.request(method, f"{board}{path}")
    problem = problem_of(answer)
    assert problem["type"] == "/problems/internal"
    assert problem["detail"] == "something went wrong on our side"
    assert "secret" not in answer.text
    failed = next(line for line in logged if line["event"] == "request failed")
    assert str(failed["exc_info"]) == "the secret cause"
    assert failed["request_id"] == problem["request_id"]


async def test_a_score_that_the_store_fails_on_is_answered(
    client: AsyncClient, board: str, laurels: Laurels, monkeypatch: pytest.MonkeyPatch
):
    async def fail(*_: object) -> None:
        raise RuntimeError("the secret cause")

    with monkeypatch.context() as patched:
        patched.setattr(laurels.valkey, "write", fail)
        failed = await client.post(f"{board}/scores", json={"member": "ada", "score": 1})
    assert problem_of(failed)["type"] == "/problems/internal"
    assert (await client.post(f"{board}/scores", json={"member": "ada", "score": 1})).status_code == 200


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            Unavailable("PostgreSQL does not answer at db.internal"),
            "A store does not answer; nothing was changed. Try again after `Retry-After` seconds.",
        ),
        (
            OutcomeUnknown("Valkey stopped answering (Error 111 at valkey.internal)"),
            (
                "A store stopped answering mid-call, so the change may or may not have been made. "
                "Repeat it with the same id: it counts once."
            ),
        ),
    ],
)
async def test_a_store_that_does_not_answer_is_to_be_tried_again(
    client: AsyncClient, board: str, failing: Failing, logged: Logged, *, error: LaurelsError, told: str
):
    failing("send", error)
    answer = await client.post(f"{board}/scores", json={"member": "ada", "score": 1})
    problem = problem_of(answer)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert (problem["type"], problem["detail"]) == (f"/problems/{error.kind}", told)
    assert any(line.get("detail") == error.detail for line in logged)


def kinds_of(error: type[LaurelsError]) -> Iterator[type[LaurelsError]]:
    for kind in error.__subclasses__():
        if not issubclass(kind, StartupError):
            yield kind
            yield from kinds_of(kind)


async def test_every_type_of_problem_leads_to_its_explanation(anybody: AsyncClient):
    ours = {kind.kind for kind in kinds_of(LaurelsError) if kind.__module__ == errors.__name__}
    assert ours <= BY_KIND.keys()
    for kind, explanation in EXPLANATIONS.items():
        answer = await anybody.get(f"/problems/{kind.kind}")
        assert answer.json() == {
            "type": f"/problems/{kind.kind}",
            "title": kind.title,
            "status": kind.status,
            "explanation": explanation,
        }
    problem_of(await anybody.get("/problems/nothing"))
