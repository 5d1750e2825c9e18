"""Every route, with whatever is misspelt: our own words, and what was probably meant."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import pytest
from wrong_words import of_libraries

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fastapi import FastAPI
    from httpx import AsyncClient

Schema: TypeAlias = "dict[str, Any]"

DEFINITION = {
    "windows": [{"period": "daily", "keep": 30}, {"period": "all_time"}],
    "groups": [["country"]],
    "archive": {"snapshot": [{"period": "daily", "top": 10}]},
    "limits": {"min": 0},
    "keys": {"daily": "x:{yyyymmdd}"},
}
RATED = {"rating": {"system": "elo", "k": 32}}
# Asked by pages of the console alone, or about what a test cannot have.
OTHERS = {"begin_session", "end_session", "read_session"}
# Values that no field takes, or few.
ODD: list[Any] = [None, True, -1, 1.5, "", "x", "x" * 300, [], [None], {}, {"a": {}}]


class Route(NamedTuple):
    name: str
    method: str
    url: str
    operation: Schema


class Misspelt(NamedTuple):
    """A body, what is misspelt in it, and how it is spelt."""

    body: Any
    wrong: str
    right: str


def misspell(name: str) -> str:
    return name + name[-1]


class Walk:
    """Through a document: what each body may have, and bodies with one thing wrong."""

    def __init__(self, document: Schema) -> None:
        self.schemas: Schema = document["components"]["schemas"]

    def resolved(self, schema: Schema) -> list[Schema]:
        if "$ref" in schema:
            return self.resolved(self.schemas[schema["$ref"].rpartition("/")[2]])
        for several in ("anyOf", "oneOf", "allOf"):
            if several in schema:
                return [found for each in schema[several] for found in self.resolved(each)]
        return [schema]

    def misspelt(self, schema: Schema, example: object) -> Iterator[Misspelt]:
        """Each field that there could be, and each value that is one of several."""
        for form in self.resolved(schema):
            if isinstance(example, dict) and "properties" in form:
                given: dict[str, Any] = {**example}
                if any(
                    below.get("const", given.get(name)) != given.get(name)
                    for name, below in form["properties"].items()
                ):
                    continue  # of another kind
                for name, below in form["properties"].items():
                    yield Misspelt({**given, misspell(name): given.get(name, 1)}, misspell(name), name)
                    for value in self.choices(below):
                        yield Misspelt({**given, name: misspell(value)}, misspell(value), value)
                    if name in given:
                        for each in self.misspelt(below, given[name]):
                            yield each._replace(body={**given, name: each.body})
            elif isinstance(example, list) and example and "items" in form:
                given_list: list[Any] = [*example]
                first, *others = given_list
                for each in self.misspelt(form["items"], first):
                    yield each._replace(body=[each.body, *others])

    def choices(self, schema: Schema) -> list[str]:
        found: list[list[Any]] = [form.get("enum", []) for form in self.resolved(schema)]
        return [value for values in found for value in values if isinstance(value, str) and len(value) > 3]

    def odd(self, schema: Schema, example: object) -> Iterator[Any]:
        """Bodies of which one value is of another kind."""
        yield from ODD
        if isinstance(example, dict):
            given: dict[str, Any] = {**example}
            for form in self.resolved(schema):
                for name, below in form.get("properties", {}).items():
                    yield from ({**given, name: value} for value in self.odd(below, given.get(name)))


def routes(document: Schema, project: str) -> Iterator[Route]:
    values = {
        "project": project,
        "game": project,
        "board": "arcade",
        "member": "ada",
        "person": "ada",
        "place": "oslo",
        "user": "ada",
        "range": "d",
    }
    others = {"p": "0.5", "snapshot": "1", "name": "snapshots", "letter": "1", "id": "1", "prefix": "lk_x"}
    campus = {"scope": "overall", "user_id": "00000000-0000-0000-0000-000000000001"}
    for path, methods in document["paths"].items():
        if not path.startswith(("/v1/", "/leaders/", "/leaderboards/")):
            continue
        url = path.format_map(values | others | campus)
        for method, operation in methods.items():
            if operation["operationId"] not in OTHERS:
                yield Route(operation["operationId"], method.upper(), url, operation)


@pytest.fixture
def document(app: FastAPI) -> Schema:
    return app.openapi()


def example_of(route: Route) -> list[Any]:
    if route.name in {"define_board", "preview_board"}:
        return [DEFINITION, RATED]
    return [route.operation["requestBody"]["content"]["application/json"]["example"]]


def schema_of(route: Route) -> Schema:
    return route.operation["requestBody"]["content"]["application/json"]["schema"]


async def test_a_misspelt_field_or_value_of_a_body_is_told_with_what_was_meant(
    client: AsyncClient, scored: str, project: str, document: Schema
):
    del scored
    walk = Walk(document)
    tried = 0
    for route in routes(document, project):
        if "requestBody" not in route.operation:
            continue
        for example in example_of(route):
            for each in walk.misspelt(schema_of(route), example):
                answer = await client.request(route.method, route.url, json=each.body)
                where = f"{route.name} {json.dumps(each.body)}: {answer.text}"
                assert answer.status_code in (200, 422), where
                assert of_libraries(answer.text) == [], where
                assert "did you mean" in answer.text, where
                tried += 1
    assert tried > 100


async def test_a_misspelt_parameter_is_told_with_what_was_meant(
    client: AsyncClient, scored: str, project: str, document: Schema
):
    del scored
    tried = 0
    for route in routes(document, project):
        names = [each["name"] for each in route.operation.get("parameters", []) if each["in"] == "query"]
        body = example_of(route)[0] if "requestBody" in route.operation else None
        for name in names or ["limit"]:
            answer = await client.request(route.method, route.url, params={misspell(name): "1"}, json=body)
            where = f"{route.name}?{misspell(name)}: {answer.text}"
            if answer.status_code in (403, 404):  # of campuses: there are none, or a player asks
                assert route.url.startswith("/leaderboards/"), where
                continue
            assert answer.status_code == 422, where
            (error,) = answer.json()["errors"]
            assert error["field"] == misspell(name), where
            told = "it has none" if not names else "did you mean"
            assert error["detail"].startswith("there is no such parameter; "), where
            assert told in error["detail"], where
            tried += 1
    assert tried > 50


async def test_no_words_of_a_library_reach_who_sends_what_is_wrong(
    client: AsyncClient, scored: str, project: str, document: Schema
):
    """Whatever becomes of it: wrong kinds and lengths in bodies and parameters."""
    del scored
    walk = Walk(document)
    for route in routes(document, project):
        if "requestBody" in route.operation:
            for body in walk.odd(schema_of(route), example_of(route)[0]):
                if route.name == "define_board" and isinstance(body, dict):
                    continue  # as a preview, which changes nothing
                answer = await client.request(route.method, route.url, json=body)
                assert of_libraries(answer.text) == [], f"{route.name} {json.dumps(body)}: {answer.text}"
        if route.method == "GET" and not route.url.endswith("/live"):
            for parameter in route.operation.get("parameters", []):
                for value in ("", "x", "-1", "1.5", "9" * 30, "true"):
                    if parameter["in"] == "query":
                        answer = await client.get(route.url, params={parameter["name"]: value})
                        where = f"{route.name}?{parameter['name']}={value}: {answer.text}"
                        assert of_libraries(answer.text) == [], where
