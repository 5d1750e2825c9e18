"""Checks that a board's templates claim no key of Laurels' own, and none of another board. Pure.

A window's key has no `|`, and its further keys are `KEY|…`. So two boards whose windows share no key share no
key at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from laurels.boards.keys import KeySpace
from laurels.boards.patterns import Pattern
from laurels.errors import InvalidInput
from laurels.valkey.names import CAMPUS_WINDOW, LEADERS, RESERVED

if TYPE_CHECKING:
    from laurels.boards.definition import BoardDefinition
    from laurels.boards.keys import BoardRef

Patterns = dict[str, tuple[Pattern, ...]]

CAMPUS_PROJECT = "campus"


def check_templates(ref: BoardRef, definition: BoardDefinition, *, cluster: bool) -> Patterns:
    """The keys that the templates can make; raises `InvalidInput` if one could be Laurels' own."""
    for target, template in (definition.keys or {}).items():
        if "|" in template:
            raise InvalidInput.at(
                f"keys.{target}", "must not contain |, which separates a window's key from its suffixes"
            )
    patterns = KeySpace(ref, definition, cluster=cluster).patterns(definition)
    own_leaders = f"{LEADERS}{ref.project}/"
    for target, made in patterns.items():
        for pattern in made:
            for prefix in RESERVED:
                if pattern.meets(Pattern.starting_with(prefix)):
                    raise InvalidInput.at(
                        f"keys.{target}", f"names that start with {prefix} are Laurels' own; choose another"
                    )
            if ref.project != CAMPUS_PROJECT and pattern.meets(Pattern.starting_with(CAMPUS_WINDOW)):
                raise InvalidInput.at(
                    f"keys.{target}", f"names that start with {CAMPUS_WINDOW} belong to the campus boards"
                )
            bare = pattern.prefix.removeprefix("{").replace("}", "", 1) if cluster else pattern.prefix
            if bare.startswith(own_leaders):
                continue
            if any(pattern.meets(Pattern.starting_with(each)) for each in (LEADERS, "{" + LEADERS[:-1])):
                raise InvalidInput.at(
                    f"keys.{target}",
                    f"names that start with {LEADERS}GAME/ belong to the project GAME; "
                    f"those of this project start with {own_leaders}",
                )
    return patterns


def check_apart(own: Patterns, others: Patterns, named: str) -> None:
    """Raises `InvalidInput` if both boards could have the same key. `named`: the other board."""
    for target, made in own.items():
        for pattern in made:
            if any(pattern.meets(other) for each in others.values() for other in each):
                raise InvalidInput.at(
                    f"keys.{target}", f"can make a key of {named}; name {{project}} and {{board}} in it"
                )


def name_within(ref: BoardRef, other: BoardRef) -> str:
    """The other board's name, hidden if it belongs to another project."""
    return str(other) if other.project == ref.project else "a board of another project"
