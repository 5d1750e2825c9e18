"""How libraries tell of wrong input, so that none of it reaches a user."""

from __future__ import annotations

from typing import Final

OF_LIBRARIES: Final = (
    # pydantic
    "Extra inputs are not permitted",
    "Field required",
    "Input should",
    "Value error",
    "String should",
    "Tuple should",
    "List should",
    "should be a valid",
    "should have at least",
    "should have at most",
    "Unable to extract tag",
    "expected tags",
    "errors.pydantic.dev",
    "unable to parse",
    # msgspec
    "Object contains unknown field",
    "Object missing required field",
    "Expected `",
    "Invalid enum value",
    "Invalid RFC3339",
    "- at `$",
    # Python
    "Traceback",
    "object has no attribute",
)


def of_libraries(told: str) -> list[str]:
    """The phrases of libraries that there are in a text."""
    return [phrase for phrase in OF_LIBRARIES if phrase in told]
