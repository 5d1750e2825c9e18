"""Examples in docstrings (`>>>`) as blocks of code, which Markdown would take for quotations."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\n).*)*", re.MULTILINE)


class Doctests(Extension):
    def on_object(self, *, obj: Object, **_: Any) -> None:  # noqa: ANN401  # whatever griffe passes
        if obj.docstring:
            obj.docstring.value = EXAMPLE.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)
