"""People and places in the engine: changes, lists, and what other processes see of them."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest

from laurels.errors import InvalidInput, NotFound, StaleCursor
from laurels.people.records import Person, Place
from laurels.scores.results import ShownPerson

if TYPE_CHECKING:
    from collections.abc import Callable

    from laurels.sync import Laurels

_numbers = count(1)


@pytest.fixture
def project() -> str:
    return f"people-{next(_numbers)}"


@pytest.fixture
def board(engine: Laurels, project: str, valkey_url: str) -> str:
    """A board of three: ada 3, bob 2, eve 1. Its people are known as far as a test says so."""
    name = f"{project}/arcade"
    engine.define(name)
    for member, score in (("ada", 3), ("bob", 2), ("eve", 1)):
        engine.submit(name, member, score)
    for member in ("ada", "bob", "eve"):
        engine.remove_person(project, member)
    return name


def test_a_person_is_put_read_replaced_and_removed(engine: Laurels, project: str):
    given = Person("ada", "Ada", "https://x.org/a.png", "oslo", "Europe/Oslo")
    put = engine.put_person(
        project, "ada", name="Ada", avatar_url="https://x.org/a.png", place="oslo", timezone="Europe/Oslo"
    )
    assert put == engine.person(project, "ada") == given
    assert (
        engine.put_person(project, "ada", name="Ada L.")
        == engine.person(project, "ada")
        == Person("ada", "Ada L.")
    )
    assert engine.remove_person(project, "ada")
    assert not engine.remove_person(project, "ada")
    with pytest.raises(NotFound, match=rf"^{project}: there is no person 'ada'$"):
        engine.person(project, "ada")


def test_a_place_is_put_read_replaced_and_removed(engine: Laurels, project: str):
    put = engine.put_place(project, "oslo", name="Oslo", timezone="Europe/Oslo")
    assert put == engine.place(project, "oslo") == Place("oslo", "Oslo", "Europe/Oslo")
    assert engine.put_place(project, "oslo") == engine.place(project, "oslo") == Place("oslo")
    assert engine.remove_place(project, "oslo")
    assert not engine.remove_place(project, "oslo")
    with pytest.raises(NotFound, match=rf"^{project}: there is no place 'oslo'$"):
        engine.place(project, "oslo")


def test_a_bad_person_changes_nothing(engine: Laurels, project: str):
    engine.put_person(project, "ada", name="Ada")
    with pytest.raises(InvalidInput, match=r"^timezone: 'Oslo' is not an IANA timezone"):
        engine.put_person(project, "ada", timezone="Oslo")
    with pytest.raises(InvalidInput, match=r"^project: "):
        engine.put_person("no such name", "ada")
    assert engine.person(project, "ada") == Person("ada", "Ada")


def test_many_are_put_and_a_bad_one_stops_itself_alone(engine: Laurels, project: str):
    given = [Person(f"m{number:04}", f"Member {number}") for number in range(4500)]
    given[7] = Person("", "nobody")
    given[4400] = Person("m4400", timezone="Mars")
    done: list[int] = []
    result = engine.put_people(project, [*given, Person("m0000", "the last one counts")], done.append)
    assert (result.accepted, [each.index for each in result.rejected]) == (4499, [7, 4400])
    assert done == [2000, 4000, 4501]
    assert engine.person(project, "m0000").name == "the last one counts"
    assert engine.person(project, "m4499").name == "Member 4499"
    with pytest.raises(NotFound):
        engine.person(project, "m4400")


@pytest.mark.parametrize("prefix", ["", "a", "A", "AN", "å", "straß", "z", "%", "_", "ann", "\\"])
@pytest.mark.parametrize("limit", [1, 3, 1000])
def test_a_list_finds_ids_and_names_by_their_beginning(engine: Laurels, prefix: str, limit: int):
    people = [
        Person("ann", "Zoe"), Person("bob", "Anna"), Person("ANNIE", "Annie"), Person("carl"),
        Person("%x", "a%"), Person("_y", "Åse"), Person("ÅSE", "other"), Person("d", "STRASSE 1"),
        Person("straße", "x"), Person("\\", "b"), Person("an", "an"), Person("zed", "Ann"),
    ]  # fmt: skip
    project = "people-listed"
    engine.put_people(project, people)

    def found_by(person: Person) -> str | None:
        texts = [person.id, person.name or ""] if prefix else [person.id]
        found = [text.casefold() for text in texts if text.casefold().startswith(prefix.casefold())]
        return (found[0] if prefix else person.id) if found else None

    matching = [(text, person.id, person) for person in people if (text := found_by(person)) is not None]
    wanted = [person for *_, person in sorted(matching, key=lambda each: each[:2])]
    listed: list[Person] = []
    cursor = None
    while True:
        page = engine.people(project, prefix=prefix or None, limit=limit, cursor=cursor)
        assert len(page.people) <= limit
        listed += page.people
        if (cursor := page.next) is None:
            break
    assert listed == wanted


def test_a_cursor_belongs_to_its_list(engine: Laurels, project: str):
    engine.put_people(project, [Person("a1"), Person("a2")])
    cursor = engine.people(project, prefix="a", limit=1).next
    for prefix in ("b", None):
        with pytest.raises(StaleCursor):
            engine.people(project, prefix=prefix, cursor=cursor)
    with pytest.raises(StaleCursor):
        engine.places(project, prefix="a", cursor=cursor)
    with pytest.raises(InvalidInput, match=r"^limit: "):
        engine.people(project, limit=0)


def test_projects_do_not_share_people(engine: Laurels, project: str):
    engine.put_person(project, "ada", name="Ada")
    assert engine.people(f"{project}-other").people == []


READS: dict[str, Callable[[Laurels, str, bool], list[tuple[str, object]]]] = {
    "page": lambda engine, board, people: [
        (each.member, each.person) for each in engine.page(board, people=people).entries
    ],
    "entries": lambda engine, board, people: [
        (each.member, each.person) for each in engine.entries(board, limit=1, people=people)
    ],
    "around": lambda engine, board, people: [
        (each.member, each.person) for each in engine.around(board, "bob", people=people).entries
    ],
    "among": lambda engine, board, people: [
        (each.member, each.person)
        for each in engine.among(board, ["eve", "bob", "ada"], people=people).entries
    ],
    "standing": lambda engine, board, people: [
        (each.member, each.person)
        for each in (engine.standing(board, member, people=people) for member in ("ada", "bob", "eve"))
    ],
}


@pytest.mark.parametrize("read", READS)
def test_a_read_has_names_and_avatars_on_request(engine: Laurels, board: str, project: str, read: str):
    engine.put_person(project, "ada", name="Ada", avatar_url="https://x.org/a.png")
    engine.put_person(project, "bob", place="oslo")
    named = dict(READS[read](engine, board, True))
    assert named["ada"] == ShownPerson("Ada", "https://x.org/a.png")
    assert not named["bob"]
    assert not named["eve"]
    assert not any(person for _, person in READS[read](engine, board, False))


def test_a_change_shows_in_every_process_at_once(
    engine: Laurels, other_engine: Laurels, board: str, project: str
):
    for number in range(5):
        for writer, reader in ((engine, other_engine), (other_engine, engine)):
            reader.page(board, people=True)  # the reader has cached what was
            writer.put_person(project, "ada", name=f"Ada {number} of {id(writer)}")
            writer.put_people(project, [Person("bob", f"Bob {number}")])
            for each in (writer, reader):
                shown = [entry.person for entry in each.page(board, people=True).entries]
                assert shown[0] == ShownPerson(f"Ada {number} of {id(writer)}", None)
                assert shown[1] == ShownPerson(f"Bob {number}", None)
            writer.remove_person(project, "ada")
            assert not reader.page(board, people=True).entries[0].person


def test_a_member_that_no_person_can_be_is_shown_without_one(engine: Laurels, board: str):
    engine.submit(board, "a\0b", 10)
    assert engine.page(board, people=True).entries[0].member == "a\0b"
