"""What Schemathesis cannot know: how lines of JSON are written, and what makes a definition good."""

from __future__ import annotations

import json
import os
from typing import Any, cast

import schemathesis

DEFINE = "PUT /v1/projects/{project}/boards/{board}"
# Of a definition, what is good whatever it is. A random time zone, key template or feed is refused.
ALWAYS_GOOD = {"aggregate", "order", "ties", "dense", "allow_op", "player_writes"}


@schemathesis.serializer("application/x-ndjson")
def write_lines(_: object, value: object) -> bytes:
    return value.encode("utf-8", "replace") if isinstance(value, str) else json.dumps(value).encode()


def map_query(context: Any, query: dict[str, object] | None) -> dict[str, object] | None:  # noqa: ANN401  # Schemathesis' own
    """No board has a window of the name that a random `allow_drop` names."""
    if query and context.operation.label == DEFINE:
        return {name: value for name, value in query.items() if name != "allow_drop"}
    return query


def map_body(context: Any, body: object) -> object:  # noqa: ANN401  # as above
    if isinstance(body, dict) and context.operation.label == DEFINE:
        given = cast("dict[str, object]", body)
        return {name: value for name, value in given.items() if name in ALWAYS_GOOD}
    return cast("object", body)


# Stories begin with a board: what is refused leads nowhere. The other phases send everything.
if os.environ.get("FUZZ_PHASES") == "stateful":
    cast("Any", schemathesis).hook(map_query)
    cast("Any", schemathesis).hook(map_body)
