"""Error messages about wrong input: the same words whether msgspec, Pydantic or Laurels found it. Pure."""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import lru_cache
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, cast

from msgspec import inspect

from laurels.errors import FieldError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import msgspec

# A longer name is not compared with the known names; a longer value is cut off.
LONGEST_NAME: Final = 64
REQUIRED: Final = "is required"


def near(name: object, known: Iterable[object]) -> str | None:
    """The known name that is most similar to this one, if any."""
    if not isinstance(name, str) or len(name) > LONGEST_NAME:
        return None
    names = {str(each).casefold(): str(each) for each in known}
    found = get_close_matches(name.casefold(), names, n=1)
    return names[found[0]] if found else None


def suggestion(name: object, known: Sequence[object], otherwise: str = "it has:") -> str:
    """What to write instead: «did you mean windows?», or the list of known names."""
    if like := near(name, known):
        return f"did you mean {like}?"
    return f"{otherwise} {', '.join(map(str, known))}" if known else "it has none"


def no_such(name: str, known: Sequence[object], what: str = "field") -> str:
    """For an unknown name: «there is no such field; did you mean windows?»."""
    return f"there is no such {what}; {suggestion(name, known)}"


def one_of(choices: Sequence[object], value: object, *, shows_value: bool = True) -> str:
    """For a value outside the choices: «must be desc or asc, not 'dsc'; did you mean desc?»."""
    names = [str(each) for each in choices]
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
    like = near(value, choices)
    given = f", not {_shown(value)}" if shows_value else ""
    return f"must be {listed}{given}{f'; did you mean {like}?' if like else ''}"


def _shown(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= LONGEST_NAME else f"{shown[:LONGEST_NAME]}…"


# msgspec

_KINDS: Final = {
    "int": "a whole number",
    "float": "a number",
    "str": "a string",
    "bool": "a boolean",
    "object": "an object",
    "array": "an array",
    "datetime": "a time such as 2025-10-24T12:00:00Z",
    "date": "a date such as 2025-10-24",
    "null": "null",
}
_BOUNDS: Final = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}
_FORMS: Final[list[tuple[str, Callable[[re.Match[str]], str]]]] = [
    (r"Expected `(.+)`, got `(.+)`", lambda found: f"must be {_kinds(found[1])}, not {_kinds(found[2])}"),
    (r"Expected `.+` of length (>=|<=) (\d+)", lambda found: f"must have a length of {_bound(found)}"),
    (r"Expected `.+` (>=|<=|>|<) (\S+?)(?:\.0)?", lambda found: f"must be {_bound(found)}"),
    (r"Expected `.+` matching regex (.+)", lambda found: f"must match {found[1]}"),
    (r"Invalid RFC3339 encoded (datetime|date)", lambda found: f"must be {_kinds(found[1])}"),
    (r"Invalid (datetime|date)", lambda found: f"must be {_kinds(found[1])}"),
    (r"(?:Number|Integer) (?:is )?out of range", lambda _: "is out of range"),
]


def of_msgspec(error: msgspec.ValidationError, kind: object) -> FieldError:
    """The field, and what is wrong with it. `kind` is the type that msgspec decoded."""
    message, _, place = str(error).partition(" - at `$")
    steps = re.findall(r"\.([^.\[\]]+)|\[([^\]]*)\]", place.rstrip("`"))
    path = re.sub(r"\[\.\.\.\]$", "", place.rstrip("`")).removeprefix(".")
    found = re.fullmatch(r"Object (missing required|contains unknown) field `(.*)`", message, re.DOTALL)
    if found:
        is_missing = found[1] == "missing required"
        why = REQUIRED if is_missing else no_such(found[2], _fields(_type_at(kind, steps)))
        return FieldError(f"{path}.{found[2]}".removeprefix("."), why)
    if found := re.fullmatch(r"Invalid enum value (.*)", message, re.DOTALL):
        return FieldError(path or "body", one_of(_choices(_type_at(kind, steps)), found[1].strip("'")))
    for form, reworded in _FORMS:
        if found := re.fullmatch(form, message, re.DOTALL):
            return FieldError(path or "body", reworded(found))
    return FieldError(path or "body", _plain(message))


def _kinds(types: str) -> str:
    names = types.split(" | ")
    return " or ".join(_KINDS.get(name, name) for name in names if not (name == "int" and "float" in names))


def _bound(found: re.Match[str]) -> str:
    return f"{_BOUNDS[found[1]]} {found[2]}"


@lru_cache(maxsize=64)
def _info(kind: Any) -> inspect.Type:  # noqa: ANN401  # any type that msgspec decodes
    return inspect.type_info(kind)


def _type_at(kind: object, steps: Iterable[tuple[str, str]]) -> list[inspect.Type]:
    """The types that a value at this path may have."""
    types = _unwrapped(_info(kind))
    for name, _ in steps:
        below: list[inspect.Type] = []
        for each in types:
            if isinstance(each, inspect.StructType):
                below += [field.type for field in each.fields if field.encode_name == name]
            elif isinstance(each, inspect.DictType):
                below.append(each.value_type)
            elif isinstance(each, inspect.ListType | inspect.VarTupleType):
                below.append(each.item_type)
        types = [found for each in below for found in _unwrapped(each)]
    return types


def _unwrapped(kind: inspect.Type) -> list[inspect.Type]:
    if isinstance(kind, inspect.Metadata):
        return _unwrapped(kind.type)
    if isinstance(kind, inspect.UnionType):
        return [found for each in kind.types for found in _unwrapped(each)]
    return [kind]


def _fields(types: Iterable[inspect.Type]) -> list[str]:
    structs = [each for each in types if isinstance(each, inspect.StructType)]
    return [field.encode_name for each in structs for field in each.fields]


def _choices(types: Iterable[inspect.Type]) -> list[object]:
    return [value for each in types if isinstance(each, inspect.LiteralType) for value in each.values]


# pydantic

_MUST_BE: Final = {
    "string": "a string",
    "bool": "a boolean",
    "int": "a whole number",
    "float": "a number",
    "tuple": "an array",
    "list": "an array",
    "dict": "an object",
    "model": "an object",
    "model_attributes": "an object",
    "time_delta": "an ISO duration such as P1D",
}
# bool comes before int, since bool is a subclass of int.
_PYTHON_KINDS: Final[dict[type, str]] = {
    bool: "bool",
    int: "int",
    float: "float",
    str: "str",
    dict: "object",
    list: "array",
    tuple: "array",
    NoneType: "null",
}
_LIMITS: Final = {
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "greater_than": "must be more than {gt}",
    "less_than": "must be less than {lt}",
    "too_short": "must have a length of at least {min_length}, not {actual_length}",
    "too_long": "must have a length of at most {max_length}, not {actual_length}",
    "string_too_short": "must have a length of at least {min_length}",
    "string_too_long": "must have a length of at most {max_length}",
    "finite_number": "must be a finite number",
    "int_from_float": "must be a whole number",
}


def of_pydantic(
    found: Mapping[str, Any],
    known: Sequence[str] = (),
    patterns: Mapping[str, str] | None = None,
    *,
    shows_input: bool = True,
) -> str:
    """What is wrong with a field, from one of `ValidationError.errors()`.

    `known`: the names of the fields beside it. `patterns`: what regular expressions mean. `shows_input`:
    whether the message may repeat the input.
    """
    kind: str = found["type"]
    about = cast("Mapping[str, Any]", found.get("ctx") or {})
    message = _plain(found["msg"])
    if kind == "extra_forbidden":
        message = no_such(str(found["loc"][-1]), known)
    elif kind in {"missing", "union_tag_not_found"}:
        message = REQUIRED
    elif kind in {"literal_error", "union_tag_invalid"}:
        choices = re.findall(r"'([^']*)'", about.get("expected") or about["expected_tags"])
        message = one_of(choices, about.get("tag", found.get("input")), shows_value=shows_input)
    elif kind in _LIMITS:
        message = _LIMITS[kind].format_map({name: _number(value) for name, value in about.items()})
    elif kind == "string_pattern_mismatch":
        wanted = (patterns or {}).get(about["pattern"], f"like {about['pattern']}")
        message = f"{_shown(found.get('input'))} is not {wanted}" if shows_input else f"must be {wanted}"
    elif shape := re.fullmatch(r"(.+)_(?:type|parsing|parsing_size)", kind):
        wanted = _MUST_BE.get(shape[1], shape[1].replace("_", " "))
        message = f"must be {wanted}{_instead(found) if shows_input else ''}"
    return message


def _number(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _instead(found: Mapping[str, Any]) -> str:
    """What the input was: its kind, or the text itself if it could not be parsed."""
    given = found.get("input")
    is_read = isinstance(given, str) and not found["type"].endswith("_type")
    return f", not {_shown(given) if is_read else _kind_of(given)}"


def _kind_of(value: object) -> str:
    for kind, name in _PYTHON_KINDS.items():
        if isinstance(value, kind):
            return _KINDS[name]
    return type(value).__name__


def _plain(message: str) -> str:
    """An unforeseen message, reworded as far as possible."""
    message = message.removeprefix("Value error, ")
    return re.sub(r"^(?:Input|Value|String|Expected value) should (?:be )?(?:a valid )?", "must be ", message)
