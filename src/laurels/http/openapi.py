"""Makes the OpenAPI document from the declared operations."""

from __future__ import annotations

import re
from importlib.metadata import version
from inspect import cleandoc, getdoc
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
from starlette.routing import compile_path

from laurels.boards.definition import BoardDefinition
from laurels.http import body
from laurels.http.idempotency_key import KEY_BYTES
from laurels.http.openapi_defaults import HEADERS, PATH, complete
from laurels.http.operation import BOARD
from laurels.http.problems import EXPLANATIONS, MEDIA_TYPE, Problem, type_of
from laurels.scores.submission import ID_BYTES, MEMBER_BYTES, OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from laurels.http.operation import Body, Operation

Schema = dict[str, Any]

ABOUT: Final = """Leaderboards: submit scores, and read ranks by hour, day, week, month, year or all time.

Send `Authorization: Bearer KEY`, or a player's token. Every error is `application/problem+json` (RFC 9457);
its `type` links to an explanation. Every answer has an `X-Request-Id`: yours, if you send one.
"""
TAGS: Final = {
    "boards": "Define, preview, list and drop boards.",
    "scores": "Submit scores.",
    "matches": "Report matches, which change the ratings of their players.",
    "entries": "Read pages, standings and neighbourhoods; change or remove members.",
    "windows": "List windows, and read how their scores are distributed.",
    "snapshots": "Read archived windows.",
    "live": "Follow changes as they happen.",
    "campus": "Campus leaderboards and streaks, of the project `campus`.",
    "leaders": "The interface of the Leaders service to the same boards: a game is a project.",
    "keys": "API keys, and the secrets of players' tokens and signatures.",
    "members": "Export or erase everything about a member.",
    "people": "Names, avatars, places and timezones of members.",
    "jobs": "Background jobs. For keys of every project.",
    "deployment": "The state of the deployment. For keys of every project.",
    "console": "Sign in to the console, from its own pages.",
    "health": "The state of the process. These need no key.",
}
_TEXT: Final[Schema] = {"type": "string"}
HEADER_SCHEMAS: Final[dict[str, Schema]] = {
    "Idempotency-Key": {
        "type": "string",
        "pattern": "^[!-~]([ -~]*[!-~])?$",
        "minLength": 1,
        "maxLength": KEY_BYTES,
        "examples": ["8e03978e-40d5-43e8-bc93-6894a57f9324"],
    },
}
# Classes that have another name in the document than in the code.
PUBLISHED_AS: Final = {
    "BoardAnswer": "Board",
    "ConsoleSession": "Session",
    "FindingAnswer": "Finding",
    "LeadersEntry": "Ranked",
    "LiveEvent": "Event",
}
REFERENCE: Final = "#/components/schemas/{name}"
_KEY: Final[Schema] = {
    "type": "http",
    "scheme": "bearer",
    "description": "A key of the project or of every project, or a player's token.",
}
_LINES: Final[Schema] = {"description": "Text with one submission per line, each validated by itself."}

_SCORE: Final[Schema] = {
    "type": ["number", "string"],
    "description": "A number; on an `int64` board a string of decimal digits (requests may send either).",
    "examples": [1200, "9007199254740993"],
}
_NO_SCORE: Final[Schema] = {**_SCORE, "type": ["number", "string", "null"]}
# Descriptions of fields by name, for those that have none. They complete the schemas that msgspec makes.
FIELDS: Final[dict[str, Schema]] = {
    "member": {
        "description": "The member that is ranked: 1 to 256 bytes of UTF-8, any characters.",
        "minLength": 1,
        "maxLength": MEMBER_BYTES,
    },
    "score": _SCORE,
    "previous_score": _NO_SCORE,
    "low": _SCORE,
    "high": _SCORE,
    "rank": {
        "description": "From 1: one more than the number of better entries; unique if the board breaks ties."
    },
    "previous_rank": {"description": "The rank before this submission."},
    "board_rank": {"description": "The rank among all entries."},
    "dense_rank": {"description": "From 1: one more than the number of different better scores."},
    "ordinal": {"description": "The place in the list, from 1."},
    "percentile": {"description": "The share of entries that are no better, from 0 to 1."},
    "total": {"description": "The number of entries."},
    "change": {
        "description": "Ranks gained since the previous window; null for a member that was not in it."
    },
    "metadata": {"description": "Belongs to the submission that set the entry; at most 4 KiB of JSON."},
    "applied": {"description": "Whether the entry changed."},
    "id": {
        "description": "A submission sent again with the same id counts once. 1 to 256 bytes of UTF-8.",
        "minLength": 1,
        "maxLength": ID_BYTES,
    },
    "at": {"format": "date-time", "description": "When the score was made. Default: now."},
    "groups": {"description": "Dimensions of the board, such as country, and their values."},
    "op": {
        "description": "best, last, first or sum, on a board with `allow_op`.",
        "enum": [*OPERATIONS, None],
    },
    "starts_at": {"format": "date-time"},
    "ends_at": {
        "format": "date-time",
        "description": "The first moment after the window; null for all time.",
    },
    "next_reset_at": {"format": "date-time", "description": "When the current window ends."},
    "taken_for": {"format": "date-time", "description": "The moment that the snapshot shows."},
    "taken_at": {"format": "date-time", "description": "When the snapshot was made."},
    "kept": {"description": "How many of the window's entries are archived."},
    "source": {
        "description": "Where it comes from: the live window, its snapshot, or a recount of the journal."
    },
    "next": {"description": "The `cursor` of the next page."},
    "previous": {"description": "The `cursor` of the previous page."},
    "absent": {"description": "The members without an entry."},
    "index": {"description": "The place in the batch, from 0."},
    "rejected_total": {"description": "How many were rejected, if more than are listed."},
}


def make_document(operations: Sequence[Operation]) -> Schema:
    described = [(operation, _described(operation)) for operation in operations]
    complete((each for _, each in described), _problem_answer)
    tags = list(TAGS)
    paths: Schema = {}
    for operation, each in sorted(described, key=lambda pair: tags.index(pair[0].routes.tag)):
        paths.setdefault(compile_path(operation.path)[1], {})[operation.method.lower()] = each
    return _finished(
        {
            "openapi": "3.1.0",
            "info": {"title": "Laurels", "description": ABOUT, "version": version("laurels")},
            "paths": paths,
            "components": {
                "schemas": _components(operations),
                "headers": HEADERS,
                "securitySchemes": {"key": _KEY},
            },
            "tags": [{"name": name, "description": about} for name, about in TAGS.items()],
            "security": [{"key": []}],
        }
    )


def _finished(part: Any) -> Any:  # noqa: ANN401  # any part of the document
    """The document with published names, and with a type for each choice of texts."""
    if isinstance(part, list):
        return [_finished(each) for each in cast("list[Any]", part)]
    if not isinstance(part, dict):
        return part
    found: Schema = {name: _finished(each) for name, each in cast("Schema", part).items()}
    if "$ref" in found:
        place, _, name = found["$ref"].rpartition("/")
        found["$ref"] = f"{place}/{PUBLISHED_AS.get(name, name)}"
    if "type" not in found and all(isinstance(each, str) for each in found.get("enum", [0])):
        found["type"] = "string"
    return found


def _components(operations: Iterable[Operation]) -> Schema:
    of_boards: list[Any] = [Problem]
    others: list[Any] = []
    for operation in operations:
        sent = operation.options.get("body")
        types = (operation.answer, operation.given, sent.type if sent else None)
        known = of_boards if operation.path.startswith(f"{BOARD}/") else others
        known += [each for each in types if each]
    components = _schemas_of(of_boards)
    for schema in components.values():
        for name, about in FIELDS.items():
            if "description" not in schema.get("properties", {}).get(name, {"description": ""}):
                schema["properties"][name] = _described_field(schema["properties"][name], about)
    definition = BoardDefinition.model_json_schema(ref_template=REFERENCE.replace("{name}", "{model}"))
    optional = _schemas_of(others) | definition.pop("$defs") | {BoardDefinition.__name__: definition}
    components |= {name: _without_null_defaults(schema) for name, schema in optional.items()}
    return {PUBLISHED_AS.get(name) or name: schema for name, schema in sorted(components.items())}


def _without_null_defaults(schema: Schema) -> Schema:
    """Removes defaults of null: generators take a property with a default for one that is always there."""
    properties: Schema = schema.get("properties", {})
    for about in properties.values():
        if about.get("default", ...) is None:
            del about["default"]
    return schema


def _schemas_of(types: Iterable[Any]) -> Schema:
    _, schemas = msgspec.json.schema_components(types, schema_hook=_pydantic, ref_template=REFERENCE)
    for schema in schemas.values():
        if "description" in schema:
            schema["description"] = cleandoc(schema["description"]).partition("\n\n")[0]
    return schemas


def _pydantic(kind: type) -> Schema:
    """The schema of a type that msgspec does not know."""
    if kind is BoardDefinition:
        return {"$ref": REFERENCE.format(name=kind.__name__)}
    raise NotImplementedError(kind)


def _described_field(schema: Schema, about: Schema) -> Schema:
    """A field's schema with its description; a description with a type replaces the schema."""
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
    needs = f"{operation.routes.needs} Needs the scope `{operation.scope}`." if operation.scope else ""
    described: Schema = {
        "tags": [operation.routes.tag],
        "summary": summary.rstrip("."),
        "description": f"{description.strip()}\n\n{needs.strip()}".strip(),
        "operationId": operation.endpoint.__name__,
        "parameters": [
            *_path_parameters(operation),
            *query_parameters(operation.query),
            *header_parameters(operation.options.get("headers", {})),
        ],
        "responses": _answers(operation),
    }
    if "body" in operation.options:
        content = _content(operation, operation.options["body"])
        described["requestBody"] = {"required": True, "content": content}
    return described if operation.scope else described | {"security": []}


def _path_parameters(operation: Operation) -> Iterable[Schema]:
    for name in re.findall(r"{(\w+):", operation.path):
        about = operation.routes.in_path.get(name) or PATH[name]
        yield {"name": name, "in": "path", "required": True, **about}


def query_parameters(kind: type[msgspec.Struct]) -> Iterable[Schema]:
    """The fields of `kind` as query parameters."""
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
    """The parameters for headers, given with their descriptions."""
    return [
        {"name": name, "in": "header", "description": about, "schema": HEADER_SCHEMAS.get(name, _TEXT)}
        for name, about in headers.items()
    ]


def _content(operation: Operation, sent: Body) -> Schema:
    schema = _schema_of(sent.type or operation.given)
    content: Schema = {body.JSON: {"schema": schema, "example": sent.example}}
    for media_type, example in sent.others.items():
        content[media_type] = {"schema": _LINES if media_type == body.LINES else schema, "example": example}
    return content


def _schema_of(kind: type) -> Schema:
    (schema,), _ = msgspec.json.schema_components([kind], schema_hook=_pydantic, ref_template=REFERENCE)
    return schema


def _answers(operation: Operation) -> Schema:
    options = operation.options
    answers: Schema = {"204": {"description": "Done."}}
    if operation.answer is not None:
        content = {"schema": _schema_of(operation.answer), "example": options.get("example")}
        answer = {"description": "The answer.", "content": {options.get("media_type", body.JSON): content}}
        answers = dict.fromkeys(map(str, operation.statuses), answer)
    for status, more in options.get("responses", {}).items():
        answers[str(status)] = answers.get(str(status), {}) | more
    if options.get("cached"):
        answers["304"] = {"description": "The answer still has the ETag of `If-None-Match`."}
    problems = {*options.get("problems", ()), *((404,) if operation.path.startswith(f"{BOARD}/") else ())}
    return answers | {str(status): _problem_answer(status) for status in problems}


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
