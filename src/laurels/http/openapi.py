"""The OpenAPI document: what FastAPI says of its routes, and what our thin ones are declared with, as one."""

from __future__ import annotations

import re
from importlib.metadata import version
from inspect import cleandoc, getdoc
from typing import TYPE_CHECKING, Any, Final

import msgspec
from fastapi.openapi.utils import get_openapi
from starlette.routing import compile_path

from laurels.http import body
from laurels.http.idempotency_key import KEY_BYTES
from laurels.http.openapi_defaults import PATH, make_alike
from laurels.http.operation import BOARD, Body, Operation
from laurels.http.problems import EXPLANATIONS, MEDIA_TYPE, Problem, type_of
from laurels.scores.submission import ID_BYTES, MEMBER_BYTES, OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fastapi.routing import APIRoute
    from starlette.routing import BaseRoute

Schema = dict[str, Any]

ABOUT: Final = """Leaderboards: scores come in, and are ranked by hour, day, week, month, year or all time.

Send `Authorization: Bearer KEY`, or a player's token. Every error is `application/problem+json` (RFC 9457);
its `type` leads to an explanation. Every answer has an `X-Request-Id`: yours, if you send one.
"""
TAGS: Final = {
    "boards": "What is ranked, and how.",
    "scores": "Scores on their way in.",
    "matches": "Games whose players are rated.",
    "entries": "Who stands where.",
    "windows": "The periods that a board is ranked over.",
    "snapshots": "Windows as they were, archived.",
    "live": "What changes, as it changes.",
    "campus": "Campus leaderboards and streaks, of the project `campus`.",
    "leaders": "The same boards in the words of the Leaders service: a game is a project.",
    "keys": "Who may come in: API keys, and the secrets of players and signatures.",
    "members": "Who is ranked, over all boards of a project.",
    "jobs": "What is done in the background. For keys of every project.",
    "deployment": "How the deployment goes. For keys of every project.",
    "console": "Signing in to the console, from its own pages.",
    "health": "How the process is. These need no key.",
}
_TEXT: Final[Schema] = {"type": "string"}
# What a stream of events consists of.
EVENT: Final[Schema] = {
    "type": "object",
    "description": "One event of a stream. `data` is JSON, of the form that the operation describes.",
    "properties": {
        "id": {"type": "string", "description": "Sent as `Last-Event-ID`, the stream goes on behind it."},
        "event": {"type": "string", "description": "Which kind of event it is."},
        "data": {"type": "string"},
        "retry": {"type": "integer", "description": "Milliseconds to wait before coming again."},
    },
}
HEADER_SCHEMAS: Final[dict[str, Schema]] = {
    "Idempotency-Key": {
        "type": "string",
        "pattern": "^[!-~]([ -~]*[!-~])?$",
        "minLength": 1,
        "maxLength": KEY_BYTES,
        "examples": ["8e03978e-40d5-43e8-bc93-6894a57f9324"],
    },
}
# Errors that every operation under a board has.
COMMON: Final = (401, 403, 404, 422, 429, 503)

_SCORE: Final[Schema] = {
    "type": ["number", "string"],
    "description": "A number; on an `int64` board a string of decimal digits (on the way in, either).",
    "examples": [1200, "9007199254740993"],
}
_NO_SCORE: Final[Schema] = {**_SCORE, "type": ["number", "string", "null"]}
# What the fields of our values mean, wherever they stand; over what msgspec knows of their types.
FIELDS: Final[dict[str, Schema]] = {
    "member": {
        "description": "Who is ranked: 1 to 256 bytes of UTF-8, any characters.",
        "minLength": 1,
        "maxLength": MEMBER_BYTES,
    },
    "score": _SCORE,
    "previous_score": _NO_SCORE,
    "low": _SCORE,
    "high": _SCORE,
    "rank": {
        "description": "Counts from 1: one more than how many are better; unique if the board breaks ties."
    },
    "previous_rank": {"description": "The rank before this submission."},
    "board_rank": {"description": "The rank among all."},
    "dense_rank": {"description": "Counts from 1: one more than how many better scores there are."},
    "ordinal": {"description": "The place in the list, from 1."},
    "percentile": {"description": "The share of entries that are no better, from 0 to 1."},
    "total": {"description": "How many entries there are."},
    "change": {"description": "Ranks gained since the window before; null for who was not in it."},
    "metadata": {"description": "Belongs to the submission that set the entry; at most 4 KiB of JSON."},
    "applied": {"description": "Whether the entry changed."},
    "id": {
        "description": "Sent again with the same id, a submission counts once: 1 to 256 bytes of UTF-8.",
        "minLength": 1,
        "maxLength": ID_BYTES,
    },
    "at": {"format": "date-time", "description": "When it was scored. Default: now."},
    "groups": {"description": "Dimensions of the board, such as country, and their values."},
    "op": {
        "description": "best, last, first or sum, on a board with `allow_op`.",
        "enum": [*OPERATIONS, None],
    },
    "starts_at": {"format": "date-time"},
    "ends_at": {"format": "date-time", "description": "The window ends right before; null if it never does."},
    "next_reset_at": {"format": "date-time", "description": "When the current window ends."},
    "taken_for": {"format": "date-time", "description": "The moment that the snapshot is a picture of."},
    "taken_at": {"format": "date-time", "description": "When the snapshot was made."},
    "kept": {"description": "How many of the window's entries are archived."},
    "source": {"description": "What tells it: the live window, its snapshot, or the journal, recounted."},
    "next": {"description": "The `cursor` to what follows."},
    "previous": {"description": "The `cursor` to what comes before."},
    "absent": {"description": "Those who have no entry."},
    "index": {"description": "Its place in the batch, from 0."},
    "rejected_total": {"description": "How many were rejected, when they are more than are listed."},
}


def problem_answers(*statuses: int) -> dict[int | str, Schema]:
    """How errors of these statuses look."""
    return {status: _problem_answer(status) for status in statuses}


def own_name(route: APIRoute) -> str:
    """What an operation is called in generated clients: as its function is."""
    return route.name


def make_document(routes: Sequence[BaseRoute], operations: Iterable[Operation]) -> Schema:
    document = get_openapi(
        title="Laurels",
        version=version("laurels"),
        description=ABOUT,
        routes=routes,
        tags=[{"name": name, "description": about} for name, about in TAGS.items()],
        separate_input_output_schemas=False,
    )
    operations = list(operations)
    schemas: Schema = document["components"]["schemas"]
    schemas.update(_components(operations), Event=EVENT)
    document["components"]["securitySchemes"] = {
        "key": {
            "type": "http",
            "scheme": "bearer",
            "description": "A key of the project, or of every one; or a player's token.",
        }
    }
    document["security"] = [{"key": []}]
    for path, methods in document["paths"].items():
        if not path.startswith(("/v1/", "/leaders/", "/leaderboards/")):
            for described in methods.values():
                described["security"] = []
    for operation in operations:
        path = compile_path(BOARD + operation.path)[1]
        document["paths"].setdefault(path, {})[operation.method.lower()] = _described(operation)
    document["paths"] = dict(sorted(document["paths"].items(), key=_place))
    make_alike(document, _problem_answer)
    return document


def _components(operations: Iterable[Operation]) -> Schema:
    types: list[Any] = [Problem]
    for operation in operations:
        documented = operation.documented
        types += [documented[part] for part in ("answer",) if part in documented]
        types += [documented["body"].type] if "body" in documented else []
    _, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    for schema in components.values():
        if "description" in schema:
            schema["description"] = cleandoc(schema["description"]).partition("\n\n")[0]
        for name, about in FIELDS.items():
            if "description" not in schema.get("properties", {}).get(name, {"description": ""}):
                schema["properties"][name] = _told(schema["properties"][name], about)
    return components


def _told(schema: Schema, about: Schema) -> Schema:
    """A field's schema with what is known about it; a type of its own takes the place of msgspec's."""
    if "type" in about:
        return {**about}
    choices = [_formatted(choice, about) for choice in schema.get("anyOf", [])]
    return {**schema, **({"anyOf": choices, **_without_format(about)} if choices else about)}


def _formatted(choice: Schema, about: Schema) -> Schema:
    is_text = choice.get("type") == "string" and "format" in about
    return {**choice, "format": about["format"]} if is_text else choice


def _without_format(about: Schema) -> Schema:
    return {name: value for name, value in about.items() if name != "format"}


def _described(operation: Operation) -> Schema:
    summary, _, description = (getdoc(operation.endpoint) or "").partition("\n")
    documented = operation.documented
    described: Schema = {
        "tags": [operation.tag],
        "summary": summary.rstrip("."),
        "description": f"{description.strip()}\n\nNeeds the scope `{operation.scope}`.".strip(),
        "operationId": operation.endpoint.__name__,
        "parameters": [
            *_path_parameters(operation),
            *query_parameters(operation.parameters),
            *header_parameters(operation.documented.get("headers", {})),
        ],
        "responses": _answers(operation),
    }
    if "body" in documented:
        described["requestBody"] = {"required": True, "content": _content(documented["body"])}
    return described


def _path_parameters(operation: Operation) -> Iterable[Schema]:
    for name in re.findall(r"{(\w+):", BOARD + operation.path):
        yield {"name": name, "in": "path", "required": True, **PATH[name]}


def query_parameters(kind: type[msgspec.Struct]) -> Iterable[Schema]:
    """How the fields of `kind` look in a query."""
    _, components = msgspec.json.schema_components([kind])
    required = components[kind.__name__]["required"]
    for name, schema in components[kind.__name__]["properties"].items():
        description = schema.pop("description")
        choices = schema.pop("anyOf", None)
        if choices:  # a parameter is left out, never null
            del schema["default"]
            schema.update(choices[0])
        parameter = {"name": name, "in": "query", "description": description, "schema": schema}
        yield {**parameter, "required": True} if name in required else parameter


def header_parameters(headers: Mapping[str, str]) -> list[Schema]:
    """How headers look, by what each means."""
    return [
        {"name": name, "in": "header", "description": about, "schema": HEADER_SCHEMAS.get(name, _TEXT)}
        for name, about in headers.items()
    ]


def _content(sent: Body) -> Schema:
    schema = _schema_of(sent.type)
    content: Schema = {body.JSON: {"schema": schema, "example": sent.example}}
    if body.LINES in sent.media_types:
        content[body.LINES] = {
            "schema": {"description": "Text: one submission a line, each judged by itself."},
            "example": sent.lines,
        }
    return content


def _schema_of(kind: type) -> Schema:
    (schema,), _ = msgspec.json.schema_components([kind], ref_template="#/components/schemas/{name}")
    return schema


def _answers(operation: Operation) -> Schema:
    documented = operation.documented
    answers: Schema = {"204": {"description": "Done."}}
    if "answer" in documented:
        content = {"schema": _schema_of(documented["answer"]), "example": documented.get("example")}
        answers = {"200": {"description": "The answer.", "content": {body.JSON: content}}}
        if operation.method == "GET":
            answers["304"] = {"description": "What `If-None-Match` names is still the same."}
    if "events" in documented:
        content = {"schema": {"$ref": "#/components/schemas/Event"}, "example": documented["events"]}
        answers = {"200": {"description": "Events.", "content": {"text/event-stream": content}}}
    problems = {*COMMON, *documented.get("problems", ())}
    return answers | {str(status): _problem_answer(status) for status in sorted(problems)}


def _problem_answer(status: int) -> Schema:
    kind = next(kind for kind in EXPLANATIONS if kind.status == status)
    example = {
        "type": type_of(kind),
        "title": kind.title,
        "status": status,
        "detail": EXPLANATIONS[kind],
        "instance": "/v1/projects/acme/boards/arcade",
        "request_id": "0f6a1f0c6f0b4c0f9d0a5a3c2f9e8b7d",
    }
    schema = {"$ref": "#/components/schemas/Problem"}
    return {"description": kind.title, "content": {MEDIA_TYPE: {"schema": schema, "example": example}}}


def _place(item: tuple[str, Schema]) -> int:
    """By the order of the tags."""
    described = next(iter(item[1].values()))
    return list(TAGS).index(described["tags"][0])
