"""Patterns: the set of keys that a template can make, and whether two such sets share a key. Pure.

A pattern is a sequence of steps, each a set of characters. A step may repeat or be optional. Two patterns
share a key if a walk through both at once reaches both ends: the product of two automata.
"""

from __future__ import annotations

from typing import NamedTuple


class Characters(NamedTuple):
    """A set of characters, or its complement."""

    listed: frozenset[str]
    is_complement: bool = False

    def meets(self, other: Characters) -> bool:
        if self.is_complement and other.is_complement:
            return True  # each lacks only a few characters
        if self.is_complement:
            return bool(other.listed - self.listed)
        if other.is_complement:
            return bool(self.listed - other.listed)
        return not self.listed.isdisjoint(other.listed)


class PatternStep(NamedTuple):
    characters: Characters
    repeats: bool = False
    is_optional: bool = False


DIGIT = PatternStep(Characters(frozenset("0123456789")))
ANYTHING = PatternStep(Characters(frozenset(), is_complement=True), repeats=True, is_optional=True)


class Pattern(NamedTuple):
    steps: tuple[PatternStep, ...]
    prefix: str
    """The literal text that every key begins with."""

    @classmethod
    def of(cls, *parts: str | PatternStep) -> Pattern:
        """Builds a pattern from literal text and steps."""
        steps: list[PatternStep] = []
        prefix, is_literal = "", True
        for part in parts:
            if isinstance(part, PatternStep):
                steps.append(part)
                is_literal = False
            else:
                steps += [PatternStep(Characters(frozenset(character))) for character in part]
                prefix += part if is_literal else ""
        return cls(tuple(steps), prefix)

    @classmethod
    def starting_with(cls, prefix: str) -> Pattern:
        return cls.of(prefix, ANYTHING)

    def meets(self, other: Pattern) -> bool:
        """Whether some key matches both."""
        if not (self.prefix.startswith(other.prefix) or other.prefix.startswith(self.prefix)):
            return False
        ends = len(self.steps), len(other.steps)
        waiting, seen = [(0, 0)], {(0, 0)}
        while waiting:
            place = waiting.pop()
            if place == ends:
                return True
            fresh = _following(self.steps, other.steps, place) - seen
            seen |= fresh
            waiting += fresh
        return False


def _following(
    mine: tuple[PatternStep, ...], others: tuple[PatternStep, ...], place: tuple[int, int]
) -> set[tuple[int, int]]:
    """The next places of a walk: past an optional step, or by a character that both steps have."""
    i, j = place
    one = mine[i] if i < len(mine) else None
    other = others[j] if j < len(others) else None
    found: set[tuple[int, int]] = set()
    if one and one.is_optional:
        found.add((i + 1, j))
    if other and other.is_optional:
        found.add((i, j + 1))
    if one and other and one.characters.meets(other.characters):
        for next_i in (i, i + 1) if one.repeats else (i + 1,):
            found.update((next_i, next_j) for next_j in ((j, j + 1) if other.repeats else (j + 1,)))
    return found
