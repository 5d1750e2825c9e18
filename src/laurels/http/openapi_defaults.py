"""What operations share in the OpenAPI document: path parameters, response headers, problems and links.

A link leads from an answer to operations that take its values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from laurels.boards.names import NAME_PATTERN
from laurels.scores.submission import MEMBER_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Schema = dict[str, Any]

# Problems of operations that need a key, and of those that have a body.
ADMITTED: Final = (401, 403, 422, 429, 503)
CARRYING: Final = (400, 408, 413, 415)

_NAME: Final[Schema] = {"type": "string", "pattern": NAME_PATTERN, "minLength": 1, "maxLength": 64}
_MEMBER: Final[Schema] = {"type": "string", "minLength": 1, "maxLength": MEMBER_BYTES}
# Path parameters by name.
PATH: Final[dict[str, Schema]] = {
    "project": {"description": "A tenant.", "schema": {**_NAME, "examples": ["acme"]}},
    "game": {"description": "A project.", "schema": {**_NAME, "examples": ["acme"]}},
    "board": {"description": "A ranking of the project.", "schema": {**_NAME, "examples": ["arcade"]}},
    "member": {
        "description": "Percent-encoded; a slash is `%2F`.",
        "schema": {**_MEMBER, "examples": ["ada"]},
    },
    "user": {
        "description": "Percent-encoded; a slash is `%2F`.",
        "schema": {**_MEMBER, "examples": ["ada"]},
    },
    "person": {
        "description": "The id of the member, percent-encoded; a slash is `%2F`.",
        "schema": {**_MEMBER, "examples": ["ada"]},
    },
    "place": {
        "description": "Percent-encoded; a slash is `%2F`.",
        "schema": {**_MEMBER, "examples": ["oslo"]},
    },
    "snapshot": {
        "description": "The id of a snapshot.",
        "schema": {
            "type": "string",
            "minLength": 1,
            "maxLength": 64,
            "examples": ["4aa2809d-be96-5b7b-9a31-ecf697ddf33f"],
        },
    },
    "prefix": {
        "description": "`lk_` and eight characters, or the key's id.",
        "schema": {"type": "string", "examples": ["lk_4k2mzq8w"]},
    },
    "id": {
        "description": "`ls_` and eight characters.",
        "schema": {"type": "string", "minLength": 1, "examples": ["ls_9d3kq0xv"]},
    },
    "name": {"description": "The name of a job.", "schema": {"type": "string", "examples": ["snapshots"]}},
    "letter": {
        "description": "The id of a dead letter.",
        "schema": {"type": "string", "examples": ["17.0.1761307200000-0"]},
    },
    "p": {
        "description": "A share from 0 to 1.",
        "schema": {"type": "number", "minimum": 0, "maximum": 1, "examples": [0.9]},
    },
}

HEADERS: Final[dict[str, Schema]] = {
    "RequestId": {
        "description": "The id of this request in the log: the client's own, if it sent one.",
        "schema": {"type": "string", "examples": ["0f6a1f0c6f0b4c0f9d0a5a3c2f9e8b7d"]},
    },
    "ETag": {
        "description": "Identifies this answer. Send it as `If-None-Match` to get 304 while it is the same.",
        "schema": {"type": "string", "examples": ['"7f8cbb6d43ea9c27bd4fe5dd61b6fb0f"']},
    },
    "RetryAfter": {
        "description": "How many seconds to wait before trying again.",
        "schema": {"type": "integer", "minimum": 0, "examples": [1]},
    },
    "Replayed": {
        "description": "`true` if this is the stored answer to an earlier request with the same key.",
        "schema": {"type": "string", "enum": ["true"]},
    },
    "WwwAuthenticate": {
        "description": "How to authenticate.",
        "schema": {"type": "string", "examples": ['Bearer realm="laurels"']},
    },
}
REPLAYING: Final = ("submit", "submit_batch", "report_match", "set_metadata", "post_value")

_BOARD: Final = {"project": "$request.path.project", "board": "$request.path.board"}
_MEMBER_OF: Final = {**_BOARD, "member": "$response.body#/member"}
_THERE: Final = {**_BOARD, "member": "$request.path.member"}
# By operation: the operations that take values of its answer, with these values.
LINKS: Final[dict[str, dict[str, dict[str, str]]]] = {
    "define_board": dict.fromkeys(
        (
            "submit",
            "submit_batch",
            "report_match",
            "read_board",
            "read_page",
            "read_among",
            "read_windows",
            "drop_board",
        ),
        _BOARD,
    ),
    "submit": {
        **dict.fromkeys(("read_standing", "read_around", "set_metadata", "remove_member"), _MEMBER_OF),
        **dict.fromkeys(("read_page", "read_percentile", "read_distribution"), _BOARD),
    },
    "report_match": dict.fromkeys(("read_page", "read_windows", "read_distribution"), _BOARD),
    "submit_batch": dict.fromkeys(("read_page", "read_windows", "read_distribution"), _BOARD),
    "read_standing": dict.fromkeys(("read_around", "set_metadata", "remove_member"), _THERE),
    "set_metadata": dict.fromkeys(("read_standing", "read_around"), _THERE),
    "create_key": {
        "revoke_key": {"project": "$request.path.project", "prefix": "$response.body#/prefix"},
        "list_keys": {"project": "$request.path.project"},
    },
    "create_secret": {
        "revoke_secret": {"project": "$request.path.project", "id": "$response.body#/id"},
        "list_secrets": {"project": "$request.path.project"},
    },
}


def complete(operations: Iterable[Schema], problem_answer: Callable[[int], Schema]) -> None:
    """Adds the shared problems, headers and links to each operation."""
    described = list(operations)
    known = {operation["operationId"] for operation in described}
    for operation in described:
        _complete_problems(operation, problem_answer)
        _describe_headers(operation)
        for status, answer in operation["responses"].items():
            links = LINKS.get(operation["operationId"], {}) if status.startswith("2") else {}
            targets = {target: values for target, values in links.items() if target in known}
            if targets:
                answer["links"] = {
                    target: {"operationId": target, "parameters": values}
                    for target, values in targets.items()
                }


def _complete_problems(operation: Schema, problem_answer: Callable[[int], Schema]) -> None:
    statuses: set[int] = set()
    if operation.get("security") != []:
        statuses.update(ADMITTED)
    if "requestBody" in operation:
        statuses.update(CARRYING)
    answers = operation["responses"]
    missing = {str(status): problem_answer(status) for status in statuses if str(status) not in answers}
    operation["responses"] = dict(sorted((answers | missing).items()))


def _describe_headers(operation: Schema) -> None:
    for status, answer in operation["responses"].items():
        named = {"X-Request-Id": "RequestId"}
        if status in ("429", "503") or (status == "409" and operation["operationId"] in REPLAYING):
            named["Retry-After"] = "RetryAfter"
        if status == "401":
            named["WWW-Authenticate"] = "WwwAuthenticate"
        if status == "304" or (status == "200" and "304" in operation["responses"]):
            named["ETag"] = "ETag"
        if status == "200" and operation["operationId"] in REPLAYING:
            named["Idempotency-Replayed"] = "Replayed"
        references = {name: {"$ref": f"#/components/headers/{header}"} for name, header in named.items()}
        answer["headers"] = references | answer.get("headers", {})
