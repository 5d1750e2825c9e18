from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from laurels.scores.results import Entry, Page, Standing
from laurels.scores.view_diff import Change, Moved, ViewState, change, is_of_one_moment, is_same_window


def page(*entries: Entry, total: int | None = None, slot: str = "2025-10-24") -> Page:
    count = len(entries) if total is None else total
    return Page("p", "b", "daily", slot, None, None, None, count, list(entries), None, None)


def folded(seen: ViewState, told: Change | None) -> tuple[int, dict[str, Entry], object]:
    """What a follower knows who was told of the change."""
    entries = {entry.member: entry for entry in seen.page.entries}
    if told is None:
        return seen.page.total, entries, seen.member
    for moved in told.entries:
        old = entries.get(moved.member)
        assert moved.previous_rank == (old.rank if old else None)
        entries[moved.member] = Entry(moved.rank, moved.member, moved.score, metadata=moved.metadata)
    for member in told.left:
        del entries[member]
    return told.total, entries, seen.member if told.member is msgspec.UNSET else told.member


standings = st.none() | st.builds(
    Standing, st.just("z"), st.integers(0, 3), st.integers(1, 3), st.just(1), st.just(1.0), st.just(3)
)


@st.composite
def looks(draw: st.DrawFn) -> ViewState:
    scores = draw(st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 3), max_size=4))
    ranked = sorted(scores.values(), reverse=True)
    entries = [
        Entry(ranked.index(score) + 1, member, score, metadata=draw(st.none() | st.just({"level": 1})))
        for member, score in sorted(scores.items(), key=lambda each: -each[1])
    ]
    return ViewState(page(*entries, total=len(entries) + draw(st.integers(0, 2))), draw(standings))


@given(looks(), looks())
def test_whoever_is_told_the_change_has_seen_both(before: ViewState, after: ViewState):
    told = change(before, after)
    assert folded(before, told) == folded(after, None)


@given(looks(), looks())
def test_only_what_changed_is_told(before: ViewState, after: ViewState):
    told = change(before, after)
    if told is None:
        assert before == after
        return
    known = {entry.member: entry for entry in before.page.entries}
    for moved in told.entries:
        assert known.get(moved.member) != Entry(
            moved.rank, moved.member, moved.score, metadata=moved.metadata
        )
    assert change(after, after) is None


def test_who_is_followed_is_told_when_it_moves_and_when_it_is_gone():
    stood = Standing("z", 5, 2, 2, 0.5, 2)
    elsewhere = msgspec.structs.replace(stood, rank=3)
    assert change(ViewState(page(), stood), ViewState(page(), stood)) is None
    assert change(ViewState(page(), stood), ViewState(page(), elsewhere)) == Change(0, [], [], elsewhere)
    assert change(ViewState(page(), stood), ViewState(page(), None)) == Change(0, [], [], None)
    assert change(ViewState(page(), None), ViewState(page(), None)) is None


def test_a_page_and_a_standing_of_two_moments_are_told_apart():
    best = page(Entry(1, "ada", 5), Entry(2, "bob", 4), total=3)
    ada, zoe = Standing("ada", 5, 1, 1, 1.0, 3), Standing("zoe", 1, 3, 3, 0.3, 3)
    assert is_of_one_moment(ViewState(best, ada), "ada")
    assert is_of_one_moment(ViewState(best, zoe), "zoe")
    assert is_of_one_moment(ViewState(best, None), "zoe")
    assert not is_of_one_moment(ViewState(best, None), "ada")
    for later in ({"score": 6}, {"rank": 2}, {"total": 4}, {"metadata": {"level": 8}}):
        assert not is_of_one_moment(ViewState(best, msgspec.structs.replace(ada, **later)), "ada")
    for later in ({"ordinal": 1}, {"total": 4}):
        assert not is_of_one_moment(ViewState(best, msgspec.structs.replace(zoe, **later)), "zoe")


def test_a_change_says_null_for_a_rank_that_there_was_not():
    told = Change(1, [Moved(1, "ada", 5, None)], [])
    assert msgspec.json.encode(told) == (
        b'{"total":1,"entries":[{"rank":1,"member":"ada","score":5,"previous_rank":null}],"left":[]}'
    )


def test_another_slot_is_another_window():
    assert is_same_window(ViewState(page()), ViewState(page(total=3)))
    assert not is_same_window(ViewState(page()), ViewState(page(slot="2025-10-25")))


def test_a_snapshot_is_the_page_and_who_is_followed():
    seen = page(Entry(1, "ada", 5))
    assert msgspec.json.encode(ViewState(seen).snapshot) == msgspec.json.encode(seen)
    with_nobody = msgspec.json.decode(msgspec.json.encode(ViewState(seen, None).snapshot))
    assert with_nobody == {**msgspec.json.decode(msgspec.json.encode(seen)), "member": None}
