"""Writes src/lib/api.d.ts: the types of the API, from the OpenAPI document of the code.

    python web/api_types.py       needs the packages of web/ (`make web`)

Its first line has the digest of that document; a test compares it with the code's.
"""

from __future__ import annotations

import json
import tempfile
from hashlib import sha256
from pathlib import Path

from build_pages import run_package

from laurels.engine import Laurels
from laurels.http.app import create_app

TYPES = Path(__file__).parent / "src" / "lib" / "api.d.ts"


def document() -> bytes:
    """The same bytes for the same API. Without its errors, which all have one form, and its version."""
    made = create_app(Laurels()).openapi()
    made["info"]["version"] = ""
    for path in made["paths"].values():
        for operation in path.values():
            answers = operation["responses"]
            operation["responses"] = {status: answers[status] for status in answers if status.startswith("2")}
    return json.dumps(made, sort_keys=True).encode()


def first_line(document: bytes) -> str:
    return f"// Made by `make types` of the OpenAPI document {sha256(document).hexdigest()[:32]}\n"


def main() -> None:
    text = document()
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder, "openapi.json"), Path(folder, "api.d.ts")
        source.write_bytes(text)
        run_package("openapi-typescript/bin/cli.js", str(source), "--output", str(made))
        TYPES.write_text(first_line(text) + made.read_text())


if __name__ == "__main__":
    main()
