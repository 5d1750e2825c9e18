"""The OpenAPI document, the documentation and the contract tell the same of the same routes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hooks
import msgspec
import pytest

from laurels.boards.definition import BoardDefinition, parse_definition
from laurels.http.app import OPERATIONS
from laurels.http.encoding import encode
from laurels.http.problems import EXPLANATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fastapi import FastAPI
    from httpx import AsyncClient

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
ROUTES, RULES = (hooks.filled((REFERENCE / name).read_text()) for name in ("http-routes.md", "http.md"))
BOARD = "/v1/projects/{project}/boards/{board}"
PEOPLE, PLACES = "/v1/projects/{project}/people", "/v1/projects/{project}/places"
CONTRACT = {
    ("GET", "/v1/projects"),
    ("GET", "/v1/projects/{project}/boards"),
    ("PUT", BOARD),
    ("GET", BOARD),
    ("DELETE", BOARD),
    ("POST", f"{BOARD}/scores"),
    ("POST", f"{BOARD}/scores/batch"),
    ("POST", f"{BOARD}/matches"),
    ("GET", f"{BOARD}/entries"),
    ("GET", f"{BOARD}/entries/{{member}}"),
    ("GET", f"{BOARD}/entries/{{member}}/around"),
    ("POST", f"{BOARD}/entries/among"),
    ("PATCH", f"{BOARD}/entries/{{member}}"),
    ("DELETE", f"{BOARD}/entries/{{member}}"),
    ("GET", f"{BOARD}/windows"),
    ("GET", f"{BOARD}/percentile/{{p}}"),
    ("GET", f"{BOARD}/distribution"),
    ("GET", "/v1/projects/{project}/keys"),
    ("POST", "/v1/projects/{project}/keys"),
    ("DELETE", "/v1/projects/{project}/keys/{prefix}"),
    ("GET", "/v1/projects/{project}/secrets"),
    ("POST", "/v1/projects/{project}/secrets"),
    ("DELETE", "/v1/projects/{project}/secrets/{id}"),
    ("GET", f"{BOARD}/live"),
    ("GET", f"{BOARD}/entries/{{member}}/history"),
    ("GET", f"{BOARD}/snapshots"),
    ("GET", f"{BOARD}/snapshots/{{snapshot}}"),
    ("DELETE", "/v1/projects/{project}/members/{member}"),
    ("GET", "/v1/projects/{project}/members/{member}/export"),
    ("GET", PEOPLE),
    ("POST", f"{PEOPLE}/batch"),
    ("PUT", f"{PEOPLE}/{{person}}"),
    ("GET", f"{PEOPLE}/{{person}}"),
    ("DELETE", f"{PEOPLE}/{{person}}"),
    ("GET", PLACES),
    ("POST", f"{PLACES}/batch"),
    ("PUT", f"{PLACES}/{{place}}"),
    ("GET", f"{PLACES}/{{place}}"),
    ("DELETE", f"{PLACES}/{{place}}"),
    ("GET", "/v1/jobs"),
    ("POST", "/v1/jobs/{name}/run"),
    ("POST", f"{BOARD}/preview"),
    ("POST", "/v1/projects/{project}/boards/batch"),
    ("GET", "/v1/overview"),
    ("GET", "/v1/doctor"),
    ("GET", "/v1/dead-letters"),
    ("POST", "/v1/dead-letters/{letter}/retry"),
    ("DELETE", "/v1/dead-letters/{letter}"),
    ("GET", "/console/session"),
    ("POST", "/console/session"),
    ("DELETE", "/console/session"),
    ("GET", "/leaders/games"),
    ("GET", "/leaders/{game}/boards"),
    ("GET", "/leaders/{game}/{board}/{range}"),
    ("GET", "/leaders/{game}/{board}/{range}/last"),
    ("POST", "/leaders/{game}/{board}/{range}/{user}"),
    ("GET", "/leaderboards/campuses"),
    ("GET", "/leaderboards/me/summary"),
    ("GET", "/leaderboards/me/days"),
    ("GET", "/leaderboards/streaks/{user_id}"),
    ("GET", "/leaderboards/{scope}"),
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/metrics"),
}


@pytest.fixture(scope="module")
def document(app: FastAPI) -> dict[str, Any]:
    return app.openapi()


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def needs_a_key(path: str) -> bool:
    return path.startswith(("/v1/", "/leaders/", "/leaderboards/"))


def parts(value: object) -> Iterator[dict[str, Any]]:
    """Every object within the document."""
    if isinstance(value, dict):
        found: dict[str, Any] = {**value}
        yield found
        for part in found.values():
            yield from parts(part)
    elif isinstance(value, list):
        listed: list[object] = [*value]
        for part in listed:
            yield from parts(part)


async def test_the_document_is_served(anybody: AsyncClient, document: dict[str, Any]):
    answer = await anybody.get("/openapi.json")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == json.loads(json.dumps(document))
    assert document["openapi"].startswith("3.1")


def test_the_document_has_the_routes_of_the_contract(document: dict[str, Any]):
    assert {(method, path) for method, path, _ in operations(document)} == CONTRACT


def documented_routes() -> dict[tuple[str, str], tuple[str, str]]:
    """By method and path the scope, and the text."""
    found: dict[tuple[str, str], tuple[str, str]] = {}
    for section in re.split(r"^### ", ROUTES, flags=re.MULTILINE)[1:]:
        route = re.search(r"^`([A-Z]+) (\S+)`(?:, with the scope `(\w+)`)?$", section, re.MULTILINE)
        assert route, section
        found[route[1], route[2]] = (route[3] or "", section)
    return found


def test_the_documentation_has_the_routes_scopes_and_parameters_of_the_document(document: dict[str, Any]):
    documented = documented_routes()
    scopes = {(each.method, re.sub(r":\w+", "", each.path)): each.scope or "" for each in OPERATIONS}
    assert documented.keys() == CONTRACT
    for method, path, operation in operations(document):
        names = [each["name"] for each in operation.get("parameters", []) if each["in"] == "query"]
        scope, text = documented[method, path]
        assert re.findall(r"^\| `(\S+)` \| query \|", text, re.MULTILINE) == names, (method, path)
        assert scope == scopes.get((method, path), scope)
        assert bool(scope) == needs_a_key(path)
        assert (f"Needs the scope `{scope}`." in operation.get("description", "")) == needs_a_key(path)


def test_the_documentation_has_a_body_and_an_answer_for_every_route(document: dict[str, Any]):
    documented = documented_routes()
    for method, path, operation in operations(document):
        _, text = documented[method, path]
        for kind in operation.get("requestBody", {}).get("content", {}):
            assert f"Body, `{kind}`:\n\n```" in text, (method, path)
        for status, answer in operation["responses"].items():
            for kind in answer.get("content", {}) if status.startswith("2") else ():
                assert f"Answer {status}, `{kind}`:\n\n```" in text, (method, path)


def test_the_documentation_says_what_every_parameter_means(document: dict[str, Any]):
    documented = documented_routes()
    for method, path, operation in operations(document):
        for parameter in operation.get("parameters", []):
            row = rf"^\| `{re.escape(parameter['name'])}` \| {parameter['in']} \|.*\| \S.* \|$"
            assert re.search(row, documented[method, path][1], re.MULTILINE), (
                method,
                path,
                parameter["name"],
            )


def test_the_documentation_has_every_problem():
    rows = re.findall(r"^\| `/problems/([\w-]+)` \| (\d+) \|", RULES, re.MULTILINE)
    assert {(kind, int(status)) for kind, status in rows} == {
        (kind.kind, kind.status) for kind in EXPLANATIONS
    }


def test_every_reference_leads_somewhere(document: dict[str, Any]):
    references = {part["$ref"] for part in parts(document) if isinstance(part.get("$ref"), str)}
    assert references
    for reference in references:
        found: Any = document
        for step in reference.removeprefix("#/").split("/"):
            found = found[step]
    assert "HTTPValidationError" not in document["components"]["schemas"]


def test_every_operation_is_described_alike(document: dict[str, Any]):
    names: list[str] = []
    for method, path, operation in operations(document):
        names.append(operation["operationId"])
        assert operation["summary"], (method, path)
        assert operation["tags"][0] in {tag["name"] for tag in document["tags"]}
        if not needs_a_key(path):
            assert operation["security"] == []
            continue
        assert "security" not in operation
        assert {"401", "403", "422", "503"} <= operation["responses"].keys()
        for status, answer in operation["responses"].items():
            if int(status) >= 400:
                assert answer["content"].keys() == {"application/problem+json"}
            for content in answer.get("content", {}).values():
                assert content["schema"].get("$ref"), (method, path, status)
                assert "example" in content, (method, path, status)
        for content in operation.get("requestBody", {}).get("content", {}).values():
            assert "example" in content
    assert len(set(names)) == len(names)
    assert document["security"] == [{"key": []}]


def test_examples_are_what_their_types_say(document: dict[str, Any]):
    def definition(_: type, value: dict[str, Any]) -> BoardDefinition:
        return parse_definition(value)

    for operation in OPERATIONS:
        if operation.answer and "media_type" not in operation.options:
            value = msgspec.convert(operation.options.get("example"), operation.answer, dec_hook=definition)
            assert encode(value)
        if sent := operation.options.get("body"):
            msgspec.convert(sent.example, sent.type or operation.given, dec_hook=definition)
    body = document["paths"][BOARD]["put"]["requestBody"]["content"]["application/json"]
    parse_definition(body["example"])
    board = document["paths"][BOARD]["get"]["responses"]["200"]["content"]["application/json"]["example"]
    parse_definition(board["definition"])


def test_scores_and_times_are_described_as_they_travel(document: dict[str, Any]):
    schemas = document["components"]["schemas"]
    for schema, field in (("Entry", "score"), ("Submission", "score"), ("Bucket", "low")):
        assert schemas[schema]["properties"][field]["type"] == ["number", "string"]
    assert schemas["Page"]["properties"]["starts_at"]["anyOf"][0] == {"type": "string", "format": "date-time"}
    assert schemas["Submission"]["description"] == "A submission as a caller gives it."
    assert schemas["Submission"]["additionalProperties"] is False


def test_every_operation_tells_the_problems_of_its_kind(document: dict[str, Any]):
    for method, path, operation in operations(document):
        answers = operation["responses"].keys()
        if needs_a_key(path):
            assert {"401", "403", "422", "429", "503"} <= answers, (method, path)
        if "requestBody" in operation:
            assert {"400", "408", "413", "415"} <= answers, (method, path)
        for answer in operation["responses"].values():
            assert answer["headers"]["X-Request-Id"] == {"$ref": "#/components/headers/RequestId"}


def test_every_answer_has_an_example(document: dict[str, Any]):
    for method, path, operation in operations(document):
        for status, answer in operation["responses"].items():
            for content in answer.get("content", {}).values():
                assert "example" in content, (method, path, status)


def test_names_in_paths_are_described_alike(document: dict[str, Any]):
    for _, _, operation in operations(document):
        for parameter in operation.get("parameters", []):
            assert parameter["description"], operation["operationId"]
            assert "title" not in parameter["schema"]
            if parameter["name"] in {"project", "game"}:
                assert parameter["schema"]["pattern"] == "^[A-Za-z0-9._-]{1,64}$"


def test_every_link_leads_to_an_operation_and_fills_its_path(document: dict[str, Any]):
    paths = {operation["operationId"]: path for _, path, operation in operations(document)}
    links = [
        link
        for _, _, operation in operations(document)
        for answer in operation["responses"].values()
        for link in answer.get("links", {}).values()
    ]
    assert {"submit", "read_standing", "remove_member", "revoke_key"} <= {
        link["operationId"] for link in links
    }
    for link in links:
        needed = set(re.findall(r"{(\w+)}", paths[link["operationId"]]))
        assert needed - link["parameters"].keys() <= {"p"}, link
