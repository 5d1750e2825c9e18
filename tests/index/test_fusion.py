"""Fuses ranked lists, and compares the scores with formulas written out here."""

from __future__ import annotations

import math
from itertools import permutations
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laurels.errors import InvalidInput
from laurels.index.fusion import CheckedList, Greatest, ReciprocalRank, Scored, SourceItem, Sum, fused, passed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laurels.index.fusion import Algorithm

Scores = dict[int, float]


def ranked_list(*keys: int) -> CheckedList:
    return CheckedList.of("sources[0]", [SourceItem((key,), None) for key in keys])


def scored(scores: Scores, *, ascending: bool = False, field: str = "sources[0]") -> CheckedList:
    """A list in the order of its scores."""
    ordered = sorted(scores.items(), key=lambda item: item[1], reverse=not ascending)
    return CheckedList.of(field, [SourceItem((key,), score) for key, score in ordered])


def order(items: Sequence[Scored]) -> list[int]:
    return [item.key[0] for item in items]


def by_key(items: Sequence[Scored]) -> Scores:
    return {item.key[0]: item.score for item in items}


lists = st.lists(st.lists(st.integers(0, 30), unique=True, max_size=20), min_size=1, max_size=5)
score_lists = st.lists(
    st.dictionaries(
        st.integers(0, 20),
        st.one_of(st.integers(-(2**63), 2**63 - 1), st.floats(-1e300, 1e300)),
        max_size=15,
    ),
    min_size=1,
    max_size=4,
)
weights = st.floats(0, 1e6)


class TestReciprocalRank:
    @given(lists, st.floats(0, 1000), st.data())
    def test_it_is_the_hand_formula(self, given_lists: list[list[int]], k: float, data: st.DataObject):
        weighed = data.draw(st.lists(weights, min_size=len(given_lists), max_size=len(given_lists)))
        found = by_key(fused([ranked_list(*keys) for keys in given_lists], ReciprocalRank(k, tuple(weighed))))
        expected: Scores = {}
        for keys, weight in zip(given_lists, weighed, strict=True):
            for place, key in enumerate(keys):
                expected[key] = expected.get(key, 0.0) + weight / (k + place + 1)
        assert found.keys() == expected.keys()
        for key, score in expected.items():
            assert math.isclose(found[key], score, rel_tol=1e-12, abs_tol=1e-12)

    def test_k_is_sixty_and_weights_are_one_unless_said(self):
        found = by_key(fused([ranked_list(1, 2), ranked_list(2)], ReciprocalRank()))
        assert found == pytest.approx({1: 1 / 61, 2: 1 / 62 + 1 / 61}, rel=1e-12)

    def test_two_middling_ranks_beat_one_good_one(self):
        assert order(fused([ranked_list(1, 2, 3), ranked_list(4, 2, 5)], ReciprocalRank()))[0] == 2

    def test_a_weight_of_nothing_lists_and_does_not_count(self):
        found = fused([ranked_list(1), ranked_list(2)], ReciprocalRank(weights=(1, 0)))
        assert [(item.key, item.score) for item in found] == [((1,), 1 / 61), ((2,), 0)]


class TestScores:
    def test_each_list_is_brought_to_one_scale(self):
        viewers = scored({1: 9000, 2: 5000, 3: 1000})
        likeness = scored({1: 0.2, 3: 0.9, 4: 0.55})
        assert by_key(fused([viewers, likeness], Sum())) == pytest.approx({1: 1, 2: 0.5, 3: 1, 4: 0.5})
        assert by_key(fused([viewers, likeness], Greatest())) == pytest.approx({1: 1, 2: 0.5, 3: 1, 4: 0.5})
        weighed = by_key(fused([viewers, likeness], Sum((3, 1))))
        assert weighed == pytest.approx({1: 3, 2: 1.5, 3: 1, 4: 0.5})

    def test_raw_scores_are_taken_as_they_are(self):
        one, other = scored({1: 10, 2: 4}), scored({2: 7.5, 3: 1})
        assert by_key(fused([one, other], Sum(normalize="none"))) == {1: 10, 2: 11.5, 3: 1}
        assert by_key(fused([one, other], Greatest(normalize="none"))) == {1: 10, 2: 7.5, 3: 1}
        assert by_key(fused([one, other], Sum((2, 10), normalize="none"))) == {1: 20, 2: 83, 3: 10}

    def test_where_less_is_better_the_first_is_still_the_best(self):
        seconds = scored({1: 59.5, 2: 61.5, 3: 63.5}, ascending=True)
        assert by_key(fused([seconds], Sum())) == {1: 1, 2: 0.5, 3: 0}

    def test_raw_scores_of_which_less_is_better_are_refused(self):
        seconds = scored({1: 59.5, 2: 61.5}, ascending=True, field="sources[1]")
        with pytest.raises(InvalidInput, match=r"^normalize: sources\[1\] has its lowest score first"):
            fused([scored({1: 3}), seconds], Sum(normalize="none"))

    def test_equal_scores_are_all_the_best(self):
        assert by_key(fused([scored({1: 7, 2: 7}), scored({3: 0})], Sum())) == {1: 1, 2: 1, 3: 1}

    def test_scores_of_64_bits_that_a_double_cannot_tell_apart_differ(self):
        found = by_key(fused([scored({1: 2**63 - 1, 2: 2**63 - 2, 3: 2**63 - 3})], Sum()))
        assert found == {1: 1, 2: 0.5, 3: 0}

    def test_the_widest_spread_of_doubles_has_a_middle(self):
        assert by_key(fused([scored({1: 1.7e308, 2: 0.0, 3: -1.7e308})], Sum())) == {1: 1, 2: 0.5, 3: 0}

    def test_a_sum_beyond_what_a_number_holds_is_refused(self):
        huge = scored({1: 1.7e308})
        with pytest.raises(InvalidInput, match=r"^score: of 1 adds up to more than a number holds"):
            fused([huge, huge], Sum(normalize="none"))
        tiny = scored({1: -1.7e308})
        with pytest.raises(InvalidInput, match=r"^score: of 1 adds up"):
            fused([huge, tiny], Sum((10, 10), normalize="none"))

    def test_a_list_without_scores_is_refused(self):
        with pytest.raises(InvalidInput, match=r"^sources\[0\].score: is missing.*rrf\(\)"):
            fused([ranked_list(1, 2)], Sum())


class TestPositions:
    @given(st.lists(st.integers(0, 1000), unique=True, max_size=50))
    def test_the_item_at_place_i_of_n_scores_the_documented_formula(self, keys: list[int]):
        found = by_key(fused([ranked_list(*keys)], Sum(normalize="position")))
        n = len(keys)
        assert found == {key: 1 - i / (n - 1) if n > 1 else 1 for i, key in enumerate(keys)}

    @given(score_lists)
    def test_scores_and_their_direction_do_not_count(self, given_scores: list[Scores]):
        for ascending in (False, True):
            lists = [scored(scores, ascending=ascending) for scores in given_scores]
            unscored = [ranked_list(*(key[0] for key in checked.places)) for checked in lists]
            for algorithm in (Sum(normalize="position"), Greatest(normalize="position")):
                assert by_key(fused(lists, algorithm)) == by_key(fused(unscored, algorithm))

    @given(score_lists)
    def test_every_normalizer_but_none_gives_the_first_1_and_the_last_0(self, given_scores: list[Scores]):
        for checked in map(scored, given_scores):
            for normalizer in ("min_max", "position"):
                values = list(checked.normalized(normalizer).values())
                assert all(0 <= value <= 1 for value in values)
                assert values == sorted(values, reverse=True)
                assert not values or values[0] == 1
        assert list(scored({1: 9, 2: 3, 3: 3}).normalized("position").values()) == [1, 0.5, 0]
        assert list(scored({1: 9, 2: 3, 3: 3}).normalized("min_max").values()) == [1, 0, 0]

    @given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.integers(2, 30))
    def test_evenly_spaced_scores_are_the_same_by_either_normalizer(self, first: float, step: float, n: int):
        checked = scored({key: first - key * step for key in range(n)})
        assert checked.normalized("min_max") == pytest.approx(checked.normalized("position"), abs=1e-3)

    def test_an_unknown_normalizer_is_refused(self):
        unknown: Any = "minmax"
        for algorithm in (Sum, Greatest):
            with pytest.raises(InvalidInput, match=r"^normalize: .*min_max.*position"):
                algorithm(normalize=unknown).check(1)


@pytest.mark.parametrize(
    "algorithm",
    [ReciprocalRank(), Sum(), Greatest(), Sum(normalize="position"), Greatest(normalize="position")],
)
class TestOrder:
    @settings(max_examples=50)
    @given(given_scores=score_lists, data=st.data())
    def test_the_order_of_the_lists_makes_no_difference(
        self, algorithm: Algorithm, given_scores: list[Scores], data: st.DataObject
    ):
        lists = [scored(scores) for scores in given_scores]
        turned = data.draw(st.permutations(lists))
        expected = [(item.key, item.score) for item in fused(lists, algorithm)]
        assert [(item.key, item.score) for item in fused(turned, algorithm)] == expected

    @settings(max_examples=50)
    @given(given_scores=score_lists)
    def test_every_item_is_there_once_with_its_place_in_each_list(
        self, algorithm: Algorithm, given_scores: list[Scores]
    ):
        lists = [scored(scores) for scores in given_scores]
        found = fused(lists, algorithm)
        assert sorted(order(found)) == sorted({key for scores in given_scores for key in scores})
        for item in found:
            for scores, part in zip(given_scores, item.parts, strict=True):
                assert (part.score if part else None) == scores.get(item.key[0])

    @settings(max_examples=50)
    @given(given_scores=score_lists)
    def test_equal_scores_go_by_the_best_rank_and_then_by_key(
        self, algorithm: Algorithm, given_scores: list[Scores]
    ):
        found = fused([scored(scores) for scores in given_scores], algorithm)
        marks = [(-item.score, min(part.rank for part in item.parts if part), item.key) for item in found]
        assert marks == sorted(marks)

    def test_an_empty_list_contributes_nothing(self, algorithm: Algorithm):
        one = scored({1: 5, 2: 3})
        alone = [(item.key, item.score) for item in fused([one], algorithm)]
        assert [(item.key, item.score) for item in fused([one, scored({})], algorithm)] == alone

    def test_empty_lists_make_an_empty_one(self, algorithm: Algorithm):
        assert fused([scored({}), scored({})], algorithm) == []


@pytest.mark.parametrize("turn", list(permutations([0.1, 0.2, 0.3])))
def test_the_order_of_the_lists_does_not_change_a_bit(turn: tuple[float, ...]):
    assert by_key(fused([scored({1: score}) for score in turn], Sum(normalize="none"))) == {1: 0.6}


@given(st.lists(weights, min_size=3, max_size=3), st.permutations([0, 1, 2]))
def test_weights_go_with_their_lists(given_weights: list[float], turn: list[int]):
    lists = [scored({1: 5, 2: 3, 3: 1}), scored({3: 5, 4: 4, 1: 0}), scored({2: 0.5, 4: 0.25})]
    for algorithm in (ReciprocalRank, Sum):
        plain = algorithm(weights=tuple(given_weights))
        turned = algorithm(weights=tuple(given_weights[number] for number in turn))
        assert by_key(fused([lists[number] for number in turn], turned)) == by_key(fused(lists, plain))


def test_keys_that_have_no_order_are_still_ordered():
    found = fused(
        [
            CheckedList.of("sources[0]", [SourceItem((1j,), None)]),
            CheckedList.of("sources[1]", [SourceItem((2j,), None)]),
        ],
        ReciprocalRank(),
    )
    assert [item.key for item in found] == [(1j,), (2j,)]


def test_only_items_in_every_stage_pass():
    found = passed([[ranked_list(1, 2, 3, 4)], [ranked_list(4, 2)]], ReciprocalRank())
    assert order(found) == [2, 4]
    assert [tuple(part.rank for part in item.parts if part) for item in found] == [(2, 2), (4, 1)]


@given(
    st.lists(
        st.lists(st.lists(st.integers(0, 9), unique=True), min_size=1, max_size=3), min_size=1, max_size=3
    )
)
def test_an_item_passes_a_stage_that_has_it_in_any_of_its_lists(stages: list[list[list[int]]]):
    checked = [[ranked_list(*keys) for keys in stage] for stage in stages]
    found = passed(checked, ReciprocalRank())
    of_stages: list[set[int]] = [{key for keys in stage for key in keys} for stage in stages]
    passing = of_stages[0].intersection(*of_stages[1:])
    assert {item.key[0] for item in found} == passing
    everything = by_key(fused([each for stage in checked for each in stage], ReciprocalRank()))
    assert by_key(found) == {key: everything[key] for key in passing}


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_scores_that_are_no_numbers_are_refused(score: float):
    with pytest.raises(InvalidInput, match=r"^sources\[0\].score: of 7 must be a finite number"):
        CheckedList.of("sources[0]", [SourceItem((7,), score)])


def test_a_key_that_is_listed_twice_is_refused():
    with pytest.raises(InvalidInput, match=r"^sources\[0\]: lists 5 at 1 and at 3"):
        ranked_list(5, 6, 5)


def test_scores_that_do_not_follow_the_order_are_refused():
    with pytest.raises(InvalidInput, match=r"^sources\[0\].score: must follow the order"):
        CheckedList.of("sources[0]", [SourceItem((1,), 3), SourceItem((2,), 5), SourceItem((3,), 4)])


def test_scores_for_only_some_items_are_refused():
    with pytest.raises(InvalidInput, match=r"^sources\[0\].score: is missing for some"):
        CheckedList.of("sources[0]", [SourceItem((1,), 3), SourceItem((2,), None)])


@pytest.mark.parametrize("k", [-1, -0.001, math.nan, math.inf, "60", True])
def test_a_negative_k_is_refused(k: float):
    with pytest.raises(InvalidInput, match=r"^k: must be a finite number from 0 on"):
        ReciprocalRank(k).check(2)


@pytest.mark.parametrize("algorithm", [ReciprocalRank, Sum])
def test_weights_are_one_for_each_source_and_not_negative(algorithm: type[ReciprocalRank | Sum]):
    algorithm(weights=(1, 0.5)).check(2)
    with pytest.raises(InvalidInput, match=r"^weights: has 1 for 2 sources"):
        algorithm(weights=(1,)).check(2)
    for wrong in (-1, math.nan, math.inf):
        with pytest.raises(InvalidInput, match=r"^weights\[1\]: must be a finite number from 0 on"):
            algorithm(weights=(1, wrong)).check(2)
