"""Key templates: what a board may call its windows in Valkey, to the letter. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple

PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
# Placeholders of time by period: each inner set tells one window of it from every other.
_DAY = ({"slot"}, {"yyyymmdd"}, {"yyyymm", "dd"}, {"yyyy", "mm", "dd"})
SLOT_PLACEHOLDERS: dict[str, tuple[set[str], ...]] = {
    "hourly": ({"slot"},),
    "daily": _DAY,
    "rolling": _DAY,
    "weekly": ({"slot"}, {"yyyyww"}, {"yyyy", "ww"}),
    "monthly": ({"slot"}, {"yyyymm"}, {"yyyy", "mm"}),
    "yearly": ({"slot"}, {"yyyy"}),
    "every": ({"slot"},),
    "all_time": (set(),),
}


class KeyShape(NamedTuple):
    """What the keys of a template look like, and one of them."""

    pattern: re.Pattern[str]
    example: str

    @classmethod
    def of(cls, template: str, period: str) -> KeyShape:
        pattern, example, end = "", "", 0
        for found in PLACEHOLDER.finditer(template):
            constant = template[end : found.start()]
            text, sample = _placeholder_text(found[1], period)
            pattern, example, end = (
                pattern + re.escape(constant) + text,
                example + constant + sample,
                found.end(),
            )
        return cls(re.compile(pattern + re.escape(template[end:])), example + template[end:])

    def may_meet(self, other: KeyShape) -> bool:
        """Whether some key could be of both."""
        return bool(self.pattern.fullmatch(other.example) or other.pattern.fullmatch(self.example))


_SLOT_TEXTS: dict[str, tuple[str, str]] = {
    "hourly": (r"\d{4}-\d{2}-\d{2}T\d{2}b?", "2025-10-24T13"),
    "daily": (r"\d{4}-\d{2}-\d{2}", "2025-10-24"),
    "rolling": (r"\d{4}-\d{2}-\d{2}", "2025-10-24"),
    "weekly": (r"\d{4}-w\d{2}", "2025-w43"),
    "monthly": (r"\d{4}-\d{2}", "2025-10"),
    "yearly": (r"\d{4}", "2025"),
    "every": (r"-?\d+", "19750"),
}


def _placeholder_text(name: str, period: str) -> tuple[str, str]:
    """A pattern of what stands for a placeholder, and an example."""
    if name == "slot":
        return _SLOT_TEXTS[period]
    if name.startswith("group."):
        return "[^:=,{}|]+", "x"  # what boards/keys.py leaves unescaped
    if name in ("project", "board"):
        return re.escape(f"{{{name}}}"), f"{{{name}}}"
    return rf"\d{{{len(name)}}}", "1" * len(name)


def check_template(target: str, template: str, period: str, dimensions: tuple[str, ...]) -> None:
    """Raises ValueError when the template could not name every window and group by itself."""
    if not template or len(template) > 512:
        raise ValueError(f"keys.{target}: a template has 1 to 512 characters")
    names: list[str] = PLACEHOLDER.findall(template)
    if re.search(r"[{}]", PLACEHOLDER.sub("", template)):
        raise ValueError(f"keys.{target}: braces only enclose placeholders, such as {{slot}}")
    telling = SLOT_PLACEHOLDERS[period]
    allowed = {"project", "board", *set[str]().union(*telling), *(f"group.{name}" for name in dimensions)}
    unknown = [name for name in names if name not in allowed]
    if unknown:
        known = ", ".join(sorted(allowed))
        raise ValueError(f"keys.{target}: unknown placeholder {{{unknown[0]}}}; known here: {known}")
    if not any(placeholders <= set(names) for placeholders in telling):
        raise ValueError(f"keys.{target}: needs {{slot}}, or two windows would share a key")
    missing = [name for name in dimensions if f"group.{name}" not in names]
    if missing:
        raise ValueError(f"keys.{target}: needs {{group.{missing[0]}}}, or groups would share a key")
