"""How lines of JSON are written down: Schemathesis knows JSON, forms and text."""

from __future__ import annotations

import json

import schemathesis


@schemathesis.serializer("application/x-ndjson")
def write_lines(_: object, value: object) -> bytes:
    return value.encode("utf-8", "replace") if isinstance(value, str) else json.dumps(value).encode()
