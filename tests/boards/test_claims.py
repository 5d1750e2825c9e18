"""Templates may claim no key of Laurels' own, and none of another board."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laurels.activity import valkey_keys as activity
from laurels.activity.valkey_keys import ActivityKeys
from laurels.boards.claims import check_apart, check_templates
from laurels.boards.definition import BoardDefinition, parse_definition
from laurels.boards.keys import BoardRef, Cut, KeySpace
from laurels.boards.leaders import LeadersBoard
from laurels.errors import InvalidInput
from laurels.valkey.names import BOARD_NAMES, RESERVED

MINE, OTHER = BoardRef("acme", "arcade"), BoardRef("other", "board")
USER = "7a7cbb2e-0f5c-4a0e-9c44-3d1f2f5f6a11"


def definition(template: str, **fields: object) -> BoardDefinition:
    return parse_definition({"keys": {"all_time": template}, **fields})


def own_keys(*, cluster: bool) -> list[str]:
    """Every key that Laurels makes for itself, by the code that makes it."""
    keys = ActivityKeys(cluster=cluster)
    of_users = [
        *(make(20251024, USER) for make in (keys.counters, keys.senders, keys.accepts, keys.seconds)),
        *(make(USER) for make in (keys.campus_of, keys.streak, keys.parked_of)),
        *(make(7) for make in (keys.cursors, keys.changed, keys.parked)),
        keys.campus_users(7, 20251024, USER),
    ]
    fixed = [*activity.STREAMS, activity.DEAD, activity.DEAD_CURSORS, activity.WORKERS]
    space = KeySpace(OTHER, BoardDefinition(), cluster=cluster)
    boards = [space.of_board(0, name) for name in BOARD_NAMES]
    laurels = ["laurels:session:x", "laurels:nonce:p:n", "laurels:limit:x", "laurels:discarded"]
    return [*of_users, *fixed, *boards, *laurels, "laurels:withdrawals"]


@pytest.mark.parametrize("cluster", [False, True])
def test_every_key_of_the_deployment_is_reserved(*, cluster: bool):
    for key in own_keys(cluster=cluster):
        assert key.startswith(RESERVED), key


@pytest.mark.parametrize("key", [key for key in own_keys(cluster=False) if "{" not in key])
def test_a_template_of_a_key_of_the_deployment_is_refused(key: str):
    with pytest.raises(InvalidInput, match="Laurels' own"):
        check_templates(MINE, definition(key), cluster=False)


@pytest.mark.parametrize("name", sorted(BOARD_NAMES))
def test_no_window_has_the_name_of_a_key_of_the_board(name: str):
    with pytest.raises(InvalidInput, match="choose another"):
        parse_definition({"windows": [{"period": "daily", "name": name}]})


def test_a_board_makes_no_key_of_a_name_that_windows_may_have():
    space = KeySpace(MINE, BoardDefinition(), cluster=False)
    with pytest.raises(ValueError, match="BOARD_NAMES"):
        space.of_board(0, "seasons:1")


@pytest.mark.parametrize("template", ["arcade|metadata", "x|gone:1", "lb:z:overall:daily:1:x"])
def test_further_keys_of_windows_cannot_be_claimed(template: str):
    with pytest.raises(InvalidInput):
        check_templates(MINE, definition(template), cluster=False)


@pytest.mark.parametrize("cluster", [False, True])
def test_the_names_of_a_game_belong_to_its_project(*, cluster: bool):
    board = LeadersBoard("highscore", "d")
    check_templates(BoardRef("pacman", board.name), board.definition, cluster=cluster)
    taken = definition("/leaders/pacman/highscore/a/a")
    with pytest.raises(InvalidInput, match="belong to the project GAME"):
        check_templates(MINE, taken, cluster=cluster)


def refused(mine: BoardDefinition, theirs: BoardDefinition) -> bool:
    try:
        own = check_templates(MINE, mine, cluster=False)
        check_apart(own, KeySpace(OTHER, theirs, cluster=False).patterns(theirs), "another")
    except InvalidInput:
        return True
    return False


def test_a_group_of_another_board_cannot_be_claimed():
    theirs = definition("arcade", groups=[["country"]])
    assert refused(definition("arcade:country=BR"), theirs)


def test_a_window_whose_number_spells_a_date_cannot_be_claimed():
    theirs = parse_definition({"windows": [{"period": "daily"}], "keys": {"daily": "arcade:{yyyymmdd}"}})
    mine = parse_definition(
        {"windows": [{"period": "every", "seconds": 86}], "keys": {"every_86s": "arcade:{slot}"}}
    )
    assert refused(mine, theirs)


TEXTS = st.text(alphabet="ab:-1", min_size=1, max_size=4)
SLOTS = {"daily": "2025-10-24", "yearly": "2025", "every_1s": "20251024", "all_time": ""}


@st.composite
def definitions(draw: st.DrawFn) -> tuple[BoardDefinition, str]:
    """A definition with one templated window, perhaps with a group; and the window's name."""
    label = draw(st.sampled_from(sorted(SLOTS)))
    window = {"period": "every", "seconds": 1} if label == "every_1s" else {"period": label}
    template = draw(TEXTS) + ("" if label == "all_time" else "{slot}") + draw(st.just("") | TEXTS)
    keys, groups = {label: template}, draw(st.sampled_from([[], [["a"]]]))
    if groups and draw(st.booleans()):
        keys[f"{label}:a"] = draw(TEXTS) + keys[label] + "{group.a}"
    try:
        return parse_definition({"windows": [window], "groups": groups, "keys": keys}), label
    except InvalidInput:
        return definition("plain"), "all_time"


def keys_of(ref: BoardRef, made: tuple[BoardDefinition, str], value: str, slot: str) -> set[str]:
    declared, label = made
    space = KeySpace(ref, declared, cluster=False)
    cuts = [Cut(), *(Cut(group, (value,)) for group in declared.groups)]
    slots = {"slot": slot if label == "every_1s" and slot else SLOTS[label]}
    windows = [space.window(0, label, slots, cut) for cut in cuts]
    return {f"{window}{part}" for window in windows for part in ("", "|metadata", "|prefixes")}


@given(definitions(), definitions(), st.text("ab:=|1-", max_size=3), st.text("12", min_size=1, max_size=2))
def test_boards_that_are_accepted_share_no_key(
    mine: tuple[BoardDefinition, str], theirs: tuple[BoardDefinition, str], value: str, slot: str
):
    if not refused(mine[0], theirs[0]):
        made = keys_of(MINE, mine, value, slot)
        assert made.isdisjoint(keys_of(OTHER, theirs, "b", "2025"))
        assert not any(key.startswith(RESERVED) for key in made)
