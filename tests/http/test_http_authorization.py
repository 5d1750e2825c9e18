"""Who may do what: every operation of the document, asked by everybody there is.

A new operation gets a line in `OPERATIONS`: who it is for, the status when it is done, what is sent; and if
its path names something new, an entry in `Stage.path`. What each caller must get follows from who it is for.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args
from uuid import UUID

import pytest

from laurels.access import sessions
from laurels.access.store.api_keys import SCOPES, digest_of
from laurels.access.store.secrets import NewSecret
from laurels.activity.store.people import Campus, User
from laurels.history.operator_status import CAMPUS_LETTERS

from .player_tokens import token

if TYPE_CHECKING:
    import httpx
    from fastapi import FastAPI

    from laurels.access.store.api_keys import Scope
    from laurels.engine import Laurels

    from .conftest import ClientWith

OK = 0
"""Whatever the operation answers when it is done."""

Caller = Literal[
    "no key", "wrong key", "revoked key", "key of another project", "read key", "submit key", "admin key",
    "key of every project", "player", "player of another project", "player for another member",
    "session", "session of another page",
]  # fmt: skip

NOT_IN: dict[str, int] = {"no key": 401, "wrong key": 401, "revoked key": 401}
# Of the console, by the admin key: asked by its own page, or by another site's.
BEYOND_THE_PAGE: dict[str, int] = {"session of another page": 403}
BEYOND: dict[str, int] = {"key of another project": 403, "player of another project": 403} | BEYOND_THE_PAGE

# By who an operation is for: the status that each caller gets.
EXPECTED: dict[str, dict[str, int]] = {
    "everybody": dict.fromkeys([*NOT_IN, *BEYOND], OK)
    | {
        "read key": OK, "submit key": OK, "admin key": OK, "key of every project": OK, "player": OK,
        "player for another member": OK, "session": OK,
    },
    "readers": NOT_IN | BEYOND | {
        "read key": OK, "submit key": 403, "admin key": OK, "key of every project": OK, "player": OK,
        "player for another member": OK, "session": OK,
    },
    # Of their own project, or of those that they may see.
    "readers of any project": NOT_IN | BEYOND_THE_PAGE | {
        "key of another project": OK, "read key": OK, "submit key": 403, "admin key": OK,
        "key of every project": OK, "player": OK, "player of another project": OK,
        "player for another member": OK, "session": OK,
    },
    "submitters": NOT_IN | BEYOND | {
        "read key": 403, "submit key": OK, "admin key": OK, "key of every project": OK, "player": 403,
        "player for another member": 403, "session": OK,
    },
    "submitters and players": NOT_IN | BEYOND | {
        "read key": 403, "submit key": OK, "admin key": OK, "key of every project": OK, "player": OK,
        "player for another member": 403, "session": OK,
    },
    # A bad line harms no other: the line of another member is rejected, and the batch is answered.
    "submitters and players by lines": NOT_IN | BEYOND | {
        "read key": 403, "submit key": OK, "admin key": OK, "key of every project": OK, "player": OK,
        "player for another member": OK, "session": OK,
    },
    # Of the deployment: for keys of every project.
    "operators": NOT_IN | BEYOND | {
        "read key": 403, "submit key": 403, "admin key": 403, "key of every project": OK, "player": 403,
        "player for another member": 403, "session": 403,
    },
    # About the player who asks.
    "players": NOT_IN | BEYOND | {
        "read key": 403, "submit key": 403, "admin key": 403, "key of every project": 403, "player": OK,
        "player for another member": OK, "session": 403,
    },
    "administrators": NOT_IN | BEYOND | {
        "read key": 403, "submit key": 403, "admin key": OK, "key of every project": OK, "player": 403,
        "player for another member": 403, "session": OK,
    },
    # The cookie alone tells; and it is given, and taken back, to pages of the console.
    "who is signed in": dict.fromkeys(get_args(Caller), 204) | BEYOND_THE_PAGE | {"session": OK},
    "pages of the console": dict.fromkeys(get_args(Caller), 403) | {"session": OK},
}  # fmt: skip


@dataclass(frozen=True)
class Asked:
    who: str
    status: int = 200
    body: Any = None
    never_ends: bool = False
    query: str = ""


BOARD = "/v1/projects/{project}/boards/{board}"
PROJECT = "/v1/projects/{project}"
SCORE = {"member": "MEMBER", "score": 5}
SIGN_IN = {"key": "KEY"}
CAMPUS = Campus(str(UUID(int=501)), "Matrix", "UTC")
STUDENT = User(str(UUID(int=502)), CAMPUS.id, "ada")

OPERATIONS: dict[tuple[str, str], Asked] = {
    ("GET", "/healthz"): Asked("everybody"),
    ("GET", "/readyz"): Asked("everybody"),
    ("GET", "/metrics"): Asked("everybody"),  # on this machine; elsewhere, see below
    ("GET", "/v1/projects"): Asked("readers of any project"),
    ("GET", f"{PROJECT}/boards"): Asked("readers"),
    ("PUT", BOARD): Asked("administrators", body={"player_writes": True}),
    ("GET", BOARD): Asked("readers"),
    ("DELETE", BOARD): Asked("administrators", 204, query="?allow_drop=all"),
    ("POST", f"{BOARD}/scores"): Asked("submitters and players", body=SCORE),
    # Refused to all who may report one: this board takes scores.
    ("POST", f"{BOARD}/matches"): Asked("submitters", 422, body={"players": ["ada", "bob"], "winner": None}),
    ("POST", f"{BOARD}/scores/batch"): Asked("submitters and players by lines", body=[SCORE]),
    ("GET", f"{BOARD}/entries"): Asked("readers"),
    ("POST", f"{BOARD}/entries/among"): Asked("readers", body={"members": ["ada"]}),
    ("GET", f"{BOARD}/entries/{{member}}"): Asked("readers"),
    ("GET", f"{BOARD}/entries/{{member}}/around"): Asked("readers"),
    ("PATCH", f"{BOARD}/entries/{{member}}"): Asked("submitters and players", body={"metadata": {}}),
    ("DELETE", f"{BOARD}/entries/{{member}}"): Asked("administrators", 204),
    ("GET", f"{BOARD}/windows"): Asked("readers"),
    ("GET", f"{BOARD}/percentile/{{p}}"): Asked("readers"),
    ("GET", f"{BOARD}/distribution"): Asked("readers"),
    ("GET", f"{BOARD}/live"): Asked("readers", never_ends=True),
    ("GET", f"{BOARD}/entries/{{member}}/history"): Asked("readers"),
    ("GET", f"{BOARD}/snapshots"): Asked("readers"),
    ("GET", f"{BOARD}/snapshots/{{snapshot}}"): Asked("readers", 404),  # for all who may ask: there is none
    ("GET", f"{PROJECT}/keys"): Asked("administrators"),
    ("POST", f"{PROJECT}/keys"): Asked("administrators", 201, body={"scopes": ["read"]}),
    ("DELETE", f"{PROJECT}/keys/{{prefix}}"): Asked("administrators", 204),
    ("GET", f"{PROJECT}/secrets"): Asked("administrators"),
    ("POST", f"{PROJECT}/secrets"): Asked("administrators", 201, body={"use": "signatures"}),
    ("DELETE", f"{PROJECT}/secrets/{{id}}"): Asked("administrators", 204),
    ("GET", f"{PROJECT}/members/{{member}}/export"): Asked("administrators"),
    ("DELETE", f"{PROJECT}/members/{{member}}"): Asked("administrators"),
    ("GET", f"{PROJECT}/people"): Asked("readers"),
    ("POST", f"{PROJECT}/people/batch"): Asked("administrators", body=[]),
    ("PUT", f"{PROJECT}/people/{{person}}"): Asked("administrators", body={}),
    ("GET", f"{PROJECT}/people/{{person}}"): Asked("readers"),
    ("DELETE", f"{PROJECT}/people/{{person}}"): Asked("administrators", 204),
    ("GET", f"{PROJECT}/places"): Asked("readers"),
    ("POST", f"{PROJECT}/places/batch"): Asked("administrators", body=[]),
    ("PUT", f"{PROJECT}/places/{{place}}"): Asked("administrators", body={}),
    ("GET", f"{PROJECT}/places/{{place}}"): Asked("readers"),
    ("DELETE", f"{PROJECT}/places/{{place}}"): Asked("administrators", 204),
    ("GET", "/v1/jobs"): Asked("operators"),
    ("POST", "/v1/jobs/{name}/run"): Asked("operators", 202),
    ("POST", f"{BOARD}/preview"): Asked("administrators", body={}),
    ("POST", f"{PROJECT}/boards/batch"): Asked("administrators", body=[]),
    ("GET", "/v1/overview"): Asked("operators"),
    ("GET", "/v1/doctor"): Asked("operators"),
    ("GET", "/v1/dead-letters"): Asked("operators"),
    ("POST", "/v1/dead-letters/{letter}/retry"): Asked(
        "operators", 404
    ),  # for all who may ask: a campus's is not
    ("DELETE", "/v1/dead-letters/{letter}"): Asked("operators", 204),
    ("GET", "/console/session"): Asked("who is signed in"),
    ("POST", "/console/session"): Asked("pages of the console", 201, body=SIGN_IN),
    ("DELETE", "/console/session"): Asked("pages of the console", 204),
    ("GET", "/leaders/games"): Asked("readers of any project"),
    ("GET", "/leaders/{game}/boards"): Asked("readers"),
    ("GET", "/leaders/{game}/{board}/{range}"): Asked("readers"),
    ("GET", "/leaders/{game}/{board}/{range}/last"): Asked("readers"),
    ("POST", "/leaders/{game}/{board}/{range}/{user}"): Asked("submitters", body={"value": 5}),
    ("GET", "/leaderboards/campuses"): Asked("readers"),
    ("GET", "/leaderboards/{scope}"): Asked("readers", query=f"?campus_id={CAMPUS.id}"),
    ("GET", "/leaderboards/streaks/{user_id}"): Asked("readers"),
    ("GET", "/leaderboards/me/summary"): Asked("players"),
    ("GET", "/leaderboards/me/days"): Asked("players", query="?from=20251001&to=20251031"),
}


@dataclass(frozen=True)
class Stage:
    """A project with everything that can be asked about, and everybody who asks."""

    project: str
    secrets: dict[str, str]
    path: dict[str, str]

    def headers(self, caller: str) -> dict[str, str]:
        secret = self.secrets[caller]
        if "session" in caller:
            site = "same-origin" if caller == "session" else "cross-site"
            cookie = f"{sessions.COOKIE}={secret}"
            return {"Authorization": "", "Cookie": cookie, sessions.HEADER: "1", "Sec-Fetch-Site": site}
        return {"Authorization": f"Bearer {secret}" if secret else ""}

    def url(self, template: str, caller: str = "", method: str = "GET") -> str:
        """What a player changes in the path is its own; unless it is another member's."""
        is_for_another = caller == "player for another member" and method == "PATCH"
        return template.format_map(self.path | ({"member": "bob"} if is_for_another else {}))

    def sent(self, body: object, caller: str) -> Any:  # noqa: ANN401  # JSON
        """The body, about the player itself; unless it is for another member."""
        if body is SCORE:
            return {**SCORE, "member": "bob" if caller == "player for another member" else "ada"}
        if body is SIGN_IN:
            return {"key": self.secrets["admin key"]}
        return [self.sent(SCORE, caller)] if body == [SCORE] else body


@pytest.fixture(scope="module")
async def scenes(laurels: Laurels) -> dict[bool, Stage]:
    """Of any project; and of the campuses' own."""
    await laurels.activity.store.put_campuses([CAMPUS])
    await laurels.activity.store.put_users([STUDENT])
    return {False: await set_up(laurels, "matrix", "ada"), True: await set_up(laurels, "campus", STUDENT.id)}


@pytest.fixture
def scene(request: pytest.FixtureRequest, scenes: dict[bool, Stage]) -> Stage:
    asked: Any = getattr(request.node, "callspec", None)
    path: str = asked.params["operation"][1] if asked else ""
    return scenes[path.startswith("/leaderboards/")]


async def set_up(laurels: Laurels, project: str, player: str) -> Stage:
    other = f"{project}-other"

    async def key(whose: str, *scopes: Scope) -> str:
        return (await laurels.keys.create(whose, scopes))[1]

    tokens: list[str] = []
    for whose in (project, other):
        await laurels.define(f"{whose}/plain", {})
        _, secret = await laurels.secrets.create(whose, NewSecret("players"))
        tokens.append(token(secret or "", whose, player))
    revoked, revoked_secret = await laurels.keys.create(project, SCOPES)
    await laurels.keys.revoke(revoked.prefix)
    secrets: dict[str, str] = {
        "no key": "",
        "wrong key": "lk_wrong000_" + "x" * 43,
        "revoked key": revoked_secret,
        "key of another project": await key(other, *SCOPES),
        "read key": await key(project, "read"),
        "submit key": await key(project, "submit"),
        "admin key": await key(project, "admin"),
        "key of every project": await key("*", "admin"),
        "player": tokens[0],
        "player of another project": tokens[1],
        "player for another member": tokens[0],
    }
    for caller in ("session", "session of another page"):
        secrets[caller] = await sessions.begin(laurels.valkey, digest_of(secrets["admin key"]))
    path = {"project": project, "board": "arcade", "member": "ada", "p": "0.5", "game": project}
    path |= {"person": "ada", "place": "oslo"}
    others = {"range": "d", "user": "ada", "snapshot": "1", "name": "snapshots", "letter": "campus.1-1"}
    students = {"scope": "overall", "user_id": STUDENT.id}
    return Stage(project, secrets, path | others | students)


async def restore(laurels: Laurels, scene: Stage, path: str) -> None:
    """What one caller was allowed to change, the next finds as it was."""
    board = f"{scene.project}/arcade"
    await laurels.define(board, {"player_writes": True})
    await laurels.remove(board, "bob")
    await laurels.submit(board, "ada", 100)
    await laurels.set_metadata(board, "ada", None)
    if "/people" in path or "/places" in path:
        await laurels.put_person(scene.project, "ada")
        await laurels.put_place(scene.project, "oslo")
    if path == "/console/session":
        scene.secrets["session"] = await sessions.begin(laurels.valkey, digest_of(scene.secrets["admin key"]))
    if "{letter}" in path:
        name: bytes = await laurels.valkey.command("XADD", CAMPUS_LETTERS, "*", "reason", "matrix")
        scene.path["letter"] = f"campus.{name.decode()}"
    if "{prefix}" in path:
        scene.path["prefix"] = (await laurels.keys.create(scene.project, ["read"]))[0].prefix
    if "/secrets" in path:
        for secret in await laurels.secrets.secrets(scene.project):
            if secret.use == "signatures":
                await laurels.secrets.revoke(secret.id)
        scene.path["id"] = (await laurels.secrets.create(scene.project, NewSecret("signatures")))[0].id


async def status_of(app: FastAPI, url: str, headers: dict[str, str]) -> int:
    """How an answer that never ends begins, to a client who leaves then."""
    status = 0
    has_begun = asyncio.Event()
    is_asked = False

    async def receive() -> dict[str, Any]:
        nonlocal is_asked
        if is_asked:
            await has_begun.wait()
            return {"type": "http.disconnect"}
        is_asked = True
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:  # noqa: ANN401  # ASGI
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
        else:
            has_begun.set()

    scope: dict[str, Any] = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http",
        "path": url, "raw_path": url.encode(), "query_string": b"", "root_path": "",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 1), "server": ("laurels.test", 80),
    }  # fmt: skip
    async with asyncio.timeout(10):
        await app(scope, receive, send)
    return status


def test_every_operation_is_in_the_table(app: FastAPI):
    document = app.openapi()
    there_are = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert there_are == OPERATIONS.keys()


@pytest.mark.parametrize("operation", OPERATIONS, ids=" ".join)
async def test_everybody_gets_what_they_may(
    client: httpx.AsyncClient, app: FastAPI, laurels: Laurels, scene: Stage, operation: tuple[str, str]
):
    method, path = operation
    asked = OPERATIONS[operation]
    found: dict[str, int] = {}
    expected: dict[str, int] = {}
    if path.startswith("/leaders/"):
        posted = await client.post(f"/leaders/{scene.project}/arcade/d/ada", json={"value": 1})
        assert posted.status_code == 200, posted.text
    assert EXPECTED[asked.who].keys() == {*get_args(Caller)}
    for caller, status in EXPECTED[asked.who].items():
        if method != "GET" or not found:
            await restore(laurels, scene, path)
        if asked.never_ends:
            found[caller] = await status_of(app, scene.url(path), scene.headers(caller))
        else:
            answer = await client.request(
                method,
                scene.url(path, caller, method) + asked.query,
                headers=scene.headers(caller),
                json=scene.sent(asked.body, caller),
            )
            found[caller] = answer.status_code
            _check(answer, caller, asked, scene)
        expected[caller] = status or asked.status
        if status in (401, 403):
            standing = await laurels.standing(f"{scene.project}/arcade", "ada")
            told = (standing.score, standing.total, standing.metadata)
            assert told == (100, 1, None), f"{caller} changed something"
    assert found == expected


def _check(answer: httpx.Response, caller: str, asked: Asked, scene: Stage) -> None:
    if answer.status_code in (401, 403):
        assert answer.headers["content-type"] == "application/problem+json"
    if caller == "player for another member" and asked.who == "submitters and players by lines":
        assert answer.json()["accepted"] == 0
        assert [each["index"] for each in answer.json()["rejected"]] == [0]
    if asked.who == "readers of any project" and answer.status_code == 200:
        (listed,) = answer.json().values()
        other = f"{scene.project}-other"
        assert (scene.project in listed) == ("another project" not in caller), caller
        assert (other in listed) == (caller in _SEES_OTHER), caller


_SEES_OTHER = {"key of another project", "player of another project", "key of every project"}


@pytest.mark.parametrize("operation", [each for each in OPERATIONS if "{" in each[1]], ids=" ".join)
@pytest.mark.parametrize("caller", ["key of another project", "player of another project"])
async def test_another_project_is_the_same_to_the_byte_whether_it_has_the_board_or_not(
    client: httpx.AsyncClient, laurels: Laurels, scene: Stage, operation: tuple[str, str], caller: str
):
    method, path = operation
    asked = OPERATIONS[operation]
    await restore(laurels, scene, path)
    answers: list[tuple[int, bytes, dict[str, str]]] = []
    for is_there in (True, False):
        if not is_there:
            await laurels.drop(f"{scene.project}/arcade", allow_drop="all")
        answer = await client.request(
            method,
            scene.url(path),
            headers={**scene.headers(caller), "X-Request-Id": "the-same"},
            json=scene.sent(asked.body, caller),
        )
        assert answer.json()["instance"] == scene.url(path)
        answers.append((answer.status_code, answer.content, dict(answer.headers)))
    assert answers[0][0] == 403
    assert answers[0] == answers[1]


async def test_metrics_take_a_key_of_every_project_from_elsewhere(client_with: ClientWith, scene: Stage):
    elsewhere = await client_with("192.0.2.1", rate_limit_failures="none")
    # By the clock of that process, tokens of the tests' noon are over.
    found = {
        caller: (await elsewhere.get("/metrics", headers=scene.headers(caller))).status_code
        for caller in EXPECTED["operators"]
        if "player" not in caller
    }
    assert found == {caller: EXPECTED["operators"][caller] or 200 for caller in found}
    public = await client_with("192.0.2.1", metrics_public="true")
    assert (await public.get("/metrics", headers={"Authorization": ""})).status_code == 200


async def test_metrics_are_not_open_to_who_is_forwarded(client_with: ClientWith):
    here = await client_with(rate_limit_failures="none")
    nobody = {"Authorization": ""}
    assert (await here.get("/metrics", headers=nobody)).status_code == 200
    for name in ("X-Forwarded-For", "Forwarded", "X-Real-Ip"):
        forwarded = {**nobody, name: "127.0.0.1"}
        assert (await here.get("/metrics", headers=forwarded)).status_code == 401
