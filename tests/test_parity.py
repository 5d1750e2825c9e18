"""The engine, `sync`, both clients and the routes have the same operations with the same parameters."""

from __future__ import annotations

import inspect
import pydoc
import re
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from laurels import sync
from laurels.arguments import DEFAULTS, FirstPage, Paging, signature_of
from laurels.client import AsyncClient, Client
from laurels.engine import Laurels
from laurels.http.app import create_app
from laurels.ratings.match import Match
from laurels.scores.page_query import PageQuery
from laurels.scores.submission import Submission

if TYPE_CHECKING:
    from collections.abc import Callable

PROJECT = "/v1/projects/{project}"
BOARD = f"{PROJECT}/boards/{{board}}"
MEMBER = f"{BOARD}/entries/{{member}}"

# Every operation of the engine that goes over HTTP, with its route.
ROUTES = {
    "define": ("put", BOARD),
    "define_many": ("post", f"{PROJECT}/boards/batch"),
    "preview": ("post", f"{BOARD}/preview"),
    "definition": ("get", BOARD),
    "drop": ("delete", BOARD),
    "projects": ("get", "/v1/projects"),
    "boards": ("get", f"{PROJECT}/boards"),
    "submit": ("post", f"{BOARD}/scores"),
    "submit_many": ("post", f"{BOARD}/scores/batch"),
    "match": ("post", f"{BOARD}/matches"),
    "page": ("get", f"{BOARD}/entries"),
    "pages": ("get", f"{BOARD}/entries"),
    "entries": ("get", f"{BOARD}/entries"),
    "watch": ("get", f"{BOARD}/live"),
    "standing": ("get", MEMBER),
    "around": ("get", f"{MEMBER}/around"),
    "among": ("post", f"{BOARD}/entries/among"),
    "percentile": ("get", f"{BOARD}/percentile/{{p}}"),
    "distribution": ("get", f"{BOARD}/distribution"),
    "windows": ("get", f"{BOARD}/windows"),
    "history": ("get", f"{MEMBER}/history"),
    "snapshots": ("get", f"{BOARD}/snapshots"),
    "snapshot": ("get", f"{BOARD}/snapshots/{{snapshot}}"),
    "set_metadata": ("patch", MEMBER),
    "remove": ("delete", MEMBER),
    "put_person": ("put", f"{PROJECT}/people/{{person}}"),
    "put_people": ("post", f"{PROJECT}/people/batch"),
    "person": ("get", f"{PROJECT}/people/{{person}}"),
    "people": ("get", f"{PROJECT}/people"),
    "remove_person": ("delete", f"{PROJECT}/people/{{person}}"),
    "put_place": ("put", f"{PROJECT}/places/{{place}}"),
    "put_places": ("post", f"{PROJECT}/places/batch"),
    "place": ("get", f"{PROJECT}/places/{{place}}"),
    "places": ("get", f"{PROJECT}/places"),
    "remove_place": ("delete", f"{PROJECT}/places/{{place}}"),
    "export_member": ("get", f"{PROJECT}/members/{{member}}/export"),
    "erase": ("delete", f"{PROJECT}/members/{{member}}"),
    "jobs": ("get", "/v1/jobs"),
    "request_job": ("post", "/v1/jobs/{name}/run"),
}
# Operations of the engine and of `sync` alone, and why.
IN_PROCESS = {
    "rebuild": "for operators, who run it beside the stores: `laurels rebuild`",
    "verify": "as rebuild",
    "export": "reads whole boards into files: `laurels export`",
    "import_lines": "reads a file of the caller: `laurels import`",
    "import_zset": "connects to another Redis from here",
    "archived": "waits for the journal in this process",
    "journal_drained": "as archived",
    "confirm": "`durability=` of a submission does it over HTTP",
}
# What the engine offers to the code around it, on its own loop.
PLUMBING = {
    "open": "begins the engine's life",
    "close": "ends it",
    "send": "a submission that the routes have decoded already",
    "prepare": "the same, without a wait",
    "remembered": "asks no store",
    "definition_in_force": "for code that must see the edit of another process at once",
}
# What only a client can be asked.
OF_CLIENTS = {"health": "of the server"}
# How a driver runs what it is given.
DRIVING = {"open", "close", "run", "iterate"}

# Parameters that differ between the engine and the clients, and why.
ENGINE_ALONE = {
    ("define", "only_new"): "the route has no such condition",
    ("erase", "board"): "the route erases from the whole project",
}
CLIENTS_ALONE = {
    ("submit_many", "id"): "names the batch when it is repeated",
    ("submit_many", "compress"): "the body on its way",
}
OTHER_DEFAULT = {("boards", "project"): "a client may have a project of its own"}

# Parameters that a route has under another name, in a header or its body.
HEADERS = {"durability": "Laurels-Durability", "last_id": "Last-Event-ID"}
OTHER_NAMES = {"start": "from", "share": "p"}
IN_BODY = {
    "define": {"definition"},
    "define_many": {"boards", "allow_drop"},
    "preview": {"definition"},
    "submit": {"member", "score", "at", "groups", "id", "op", "metadata"},
    "submit_many": {"submissions"},
    "match": {"players", "winner", "ranks", "at", "id", "groups", "metadata"},
    "among": {"members"},
    "put_person": {"name", "avatar_url", "place", "timezone"},
    "put_people": {"people"},
    "put_place": {"name", "timezone"},
    "put_places": {"places"},
    "set_metadata": {"metadata", "id"},
}
# Parameters of this side of the wire, and of the wire alone.
OF_THE_CALLER = {"progress", "id", "compress"}
OF_THE_WIRE = {
    "Idempotency-Key", "X-Laurels-Timestamp", "X-Laurels-Nonce", "X-Laurels-Signature", "last_event_id"
}  # fmt: skip


def public(kind: type) -> set[str]:
    return {
        name
        for each in kind.__mro__
        for name, value in vars(each).items()
        if inspect.isfunction(value) and not name.startswith("_")
    }


def parameters(function: Callable[..., object]) -> dict[str, inspect.Parameter]:
    return {**signature_of(function).parameters}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return create_app(Laurels()).openapi()


def test_every_operation_of_the_engine_has_its_place():
    assert public(Laurels) == {*ROUTES, *IN_PROCESS, *PLUMBING}


def test_sync_has_every_operation():
    assert public(sync.Laurels) == {*ROUTES, *IN_PROCESS, *DRIVING}


@pytest.mark.parametrize("client", [Client, AsyncClient])
def test_a_client_has_every_operation_with_a_route(client: type):
    assert public(client) == {*ROUTES, *OF_CLIENTS, *DRIVING} - {"open"}


@pytest.mark.parametrize("name", [*ROUTES, *IN_PROCESS])
def test_sync_takes_what_the_engine_takes(name: str):
    assert parameters(getattr(sync.Laurels, name)) == parameters(getattr(Laurels, name))


@pytest.mark.parametrize("client", [Client, AsyncClient])
@pytest.mark.parametrize("name", ROUTES)
def test_a_client_takes_what_the_engine_takes(name: str, client: type):
    theirs = parameters(getattr(Laurels, name))
    ours = parameters(getattr(client, name))
    assert theirs.keys() - ours.keys() == {each for operation, each in ENGINE_ALONE if operation == name}
    assert ours.keys() - theirs.keys() == {each for operation, each in CLIENTS_ALONE if operation == name}
    both = [each for each in theirs if each in ours]
    assert both == [each for each in ours if each in theirs]
    for each in both:
        assert ours[each].kind == theirs[each].kind, each
        same = ours[each].default == theirs[each].default
        assert same == ((name, each) not in OTHER_DEFAULT), each


@pytest.mark.parametrize("name", ROUTES)
def test_all_give_the_same(name: str):
    answer = str(inspect.signature(getattr(Laurels, name)).return_annotation)
    iterated = re.fullmatch(r"AsyncGenerator\[(.+)\]", answer)
    for blocking in (sync.Laurels, Client):
        given = str(inspect.signature(getattr(blocking, name)).return_annotation)
        assert given == (f"Generator[{iterated[1]}]" if iterated else answer)
    assert str(inspect.signature(getattr(AsyncClient, name)).return_annotation) == answer


@pytest.mark.parametrize("name", ROUTES)
def test_a_route_takes_what_the_engine_takes(name: str, document: dict[str, Any]):
    method, path = ROUTES[name]
    described = document["paths"][path][method]
    taken = {each["name"] for each in described.get("parameters", [])} - OF_THE_WIRE
    body = IN_BODY.get(name, set[str]())
    given = {
        HEADERS.get(each, OTHER_NAMES.get(each, each))
        for each in parameters(getattr(Client, name)).keys() - {"self"} - body - (OF_THE_CALLER - body)
    }
    # A board is named by two parts of the path, or alone where the client has a project.
    given |= {"project"} if "board" in given else set()
    missing = {"cursor"} if name in {"pages", "entries"} else set[str]()
    assert taken - given == missing
    assert given - taken == set()
    assert ("requestBody" in described) == bool(body)


def test_every_route_of_a_board_is_an_operation(document: dict[str, Any]):
    others = (f"{PROJECT}/keys", f"{PROJECT}/secrets", "/v1/overview", "/v1/doctor", "/v1/dead-letters")
    routes = {
        (method, path)
        for path, methods in document["paths"].items()
        for method in methods
        if path.startswith("/v1/") and not path.startswith(others)
    }
    assert routes == set(ROUTES.values())


def test_defaults_are_those_of_the_queries_and_the_submissions():
    for struct, operation in ((PageQuery, "page"), (Submission, "submit"), (Match, "match")):
        shown = parameters(getattr(Laurels, operation))
        for each in msgspec.structs.fields(struct):
            if each.name in shown and each.default is not msgspec.NODEFAULT:
                assert shown[each.name].default == each.default, each.name
    assert DEFAULTS.keys() < FirstPage.__annotations__.keys() < Paging.__annotations__.keys()


@pytest.mark.parametrize("driver", [Laurels, sync.Laurels, Client, AsyncClient])
def test_help_shows_signatures_and_docstrings(driver: type[Laurels | sync.Laurels | Client | AsyncClient]):
    for name in ROUTES:
        told = pydoc.plain(pydoc.render_doc(getattr(driver, name)))
        assert "**" not in told, name
        assert "Flow[" not in told, name
        assert inspect.getdoc(getattr(driver, name)), name
    told = pydoc.plain(pydoc.render_doc(driver.page))
    assert "page(self, board: 'str', *, period: 'str | None' = None, slot:" in told
    assert "limit: 'int' = 100, start: 'Start' = 'top'" in told
    assert "-> 'Page'" in told
    assert "Entries from the top" in told


def test_help_of_an_operation_of_a_client_leaves_self_out():
    with Client("http://127.0.0.1:1") as client:
        assert [*inspect.signature(client.standing).parameters] == [
            "board", "member", "period", "slot", "group", "people"
        ]  # fmt: skip
        told = pydoc.plain(pydoc.render_doc(client.standing))
        assert "standing(board: 'str', member: 'str', *, period:" in told
