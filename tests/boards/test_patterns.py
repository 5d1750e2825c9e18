"""Whether two patterns share a key is decided exactly."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from laurels.boards.patterns import ANYTHING, Characters, Pattern, PatternStep

LETTERS = "a:"
OTHER = "c"  # stands for every character that no step lists
MOST_STEPS = 3


@st.composite
def steps(draw: st.DrawFn) -> PatternStep:
    listed = draw(st.frozensets(st.sampled_from(LETTERS), min_size=1, max_size=2))
    return PatternStep(Characters(listed, draw(st.booleans())), draw(st.booleans()), draw(st.booleans()))


patterns = st.lists(st.one_of(st.sampled_from(LETTERS), steps()), max_size=MOST_STEPS).map(
    lambda parts: Pattern.of(*parts)
)


def accepts(pattern: Pattern, key: str) -> bool:
    """Tries every way to read the key, as an independent oracle."""

    def reads(place: int, rest: str) -> bool:
        if place == len(pattern.steps):
            return not rest
        step = pattern.steps[place]
        if step.is_optional and reads(place + 1, rest):
            return True
        if not rest or (rest[0] in step.characters.listed) == step.characters.is_complement:
            return False
        return reads(place + 1, rest[1:]) or (step.repeats and reads(place, rest[1:]))

    return reads(0, key)


# A shortest common key takes a step in one pattern or in both with each of its characters.
KEYS = [
    "".join(letters)
    for length in range(2 * MOST_STEPS + 1)
    for letters in product(LETTERS + OTHER, repeat=length)
]


@given(patterns, patterns)
def test_patterns_meet_exactly_where_some_key_is_of_both(one: Pattern, other: Pattern):
    assert one.meets(other) == any(accepts(one, key) and accepts(other, key) for key in KEYS)


@given(patterns, st.text(alphabet=LETTERS + OTHER, max_size=6))
def test_a_pattern_matches_exactly_the_keys_that_it_accepts(pattern: Pattern, key: str):
    assert pattern.meets(Pattern.of(key)) == accepts(pattern, key)


def test_a_repeated_step_meets_a_longer_text():
    digits = PatternStep(Characters(frozenset("0123456789-")), repeats=True)
    assert Pattern.of("arcade:", digits).meets(Pattern.of("arcade:2025-10-24"))
    assert not Pattern.of("arcade:", digits).meets(Pattern.of("arcade:2025-w43"))


def test_a_prefix_meets_only_keys_that_begin_with_it():
    workers = Pattern.starting_with("lb:workers")
    assert workers.meets(Pattern.of("lb:workers"))
    assert workers.meets(Pattern.of("lb:", ANYTHING))
    assert not workers.meets(Pattern.of("lb:worker"))
