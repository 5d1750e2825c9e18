"""Key templates: names that a board gives to its windows' keys in Valkey. Pure."""

from __future__ import annotations

import re

from laurels.boards.patterns import DIGIT, Characters, PatternStep

PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
# Placeholders of time by period. Each set is enough to distinguish the slots of the period.
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


def _digits(form: str) -> tuple[str | PatternStep, ...]:
    """The steps of a date format, whose letters stand for digits."""
    return tuple(DIGIT if letter.isalpha() else letter for letter in form)


# The characters that `boards/keys.py` does not escape. Keys of an older version may have an empty value.
_GROUP_VALUE = PatternStep(
    Characters(frozenset(":=,{}|"), is_complement=True), repeats=True, is_optional=True
)
_SLOTS: dict[str, tuple[str | PatternStep, ...]] = {
    "hourly": (
        *_digits("yyyy-mm-dd"),
        "T",
        DIGIT,
        DIGIT,
        PatternStep(Characters(frozenset("b")), is_optional=True),
    ),
    "daily": _digits("yyyy-mm-dd"),
    "rolling": _digits("yyyy-mm-dd"),
    "weekly": (*_digits("yyyy-"), "w", DIGIT, DIGIT),
    "monthly": _digits("yyyy-mm"),
    "yearly": _digits("yyyy"),
    "every": (PatternStep(Characters(frozenset("-")), is_optional=True), DIGIT._replace(repeats=True)),
}


def key_parts(template: str, period: str) -> tuple[str | PatternStep, ...]:
    """The parts of a template's keys. `{project}` and `{board}` must have been replaced before."""
    parts: list[str | PatternStep] = []
    end = 0
    for found in PLACEHOLDER.finditer(template):
        parts += [template[end : found.start()], *_placeholder_parts(found[1], period)]
        end = found.end()
    return (*parts, template[end:])


def group_parts(dimensions: tuple[str, ...]) -> tuple[str | PatternStep, ...]:
    """The suffix of a group without a template of its own: `:region=asia,city=tokyo`."""
    parts: list[str | PatternStep] = []
    for name in dimensions:
        parts += ["," if parts else ":", f"{name}=", _GROUP_VALUE]
    return tuple(parts)


def _placeholder_parts(name: str, period: str) -> tuple[str | PatternStep, ...]:
    if name == "slot":
        return _SLOTS[period]
    if name.startswith("group."):
        return (_GROUP_VALUE,)
    if name in ("project", "board"):
        return (f"{{{name}}}",)
    return (DIGIT,) * len(name)


def check_template(target: str, template: str, period: str, dimensions: tuple[str, ...]) -> None:
    """Raises ValueError if two windows or groups could get the same key."""
    if not template or len(template) > 512:
        raise ValueError(f"keys.{target}: a template has 1 to 512 characters")
    names: list[str] = PLACEHOLDER.findall(template)
    if re.search(r"[{}]", PLACEHOLDER.sub("", template)):
        raise ValueError(f"keys.{target}: braces only enclose placeholders, such as {{slot}}")
    alternatives = SLOT_PLACEHOLDERS[period]
    allowed = {
        "project",
        "board",
        *set[str]().union(*alternatives),
        *(f"group.{name}" for name in dimensions),
    }
    unknown = [name for name in names if name not in allowed]
    if unknown:
        known = ", ".join(sorted(allowed))
        raise ValueError(f"keys.{target}: unknown placeholder {{{unknown[0]}}}; known here: {known}")
    if not any(placeholders <= set(names) for placeholders in alternatives):
        raise ValueError(f"keys.{target}: needs {{slot}}, or two windows would share a key")
    missing = [name for name in dimensions if f"group.{name}" not in names]
    if missing:
        raise ValueError(f"keys.{target}: needs {{group.{missing[0]}}}, or groups would share a key")
