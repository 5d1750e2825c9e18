"""`laurels people`: the names, avatars and places of members."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from laurels.cli.options import Column, DataDir, DryRun, Json, Prefix, Project, RecordsFile
from laurels.cli.output import printable, table
from laurels.cli.session import CommandSession
from laurels.errors import NotFound
from laurels.people.records import Person

if TYPE_CHECKING:
    from laurels.engine import Laurels
    from laurels.history.records import MemberExport
    from laurels.people.records import PeopleList

app = typer.Typer(
    name="people", help="Import, list and change the people of a project.", rich_markup_mode=None
)

Id = Annotated[str, typer.Argument(metavar="ID", help="The id of the member.", show_default=False)]


@app.command(name="import")
def import_people(  # noqa: PLR0913  # each is an option of the command
    file: RecordsFile,
    *,
    project: Project = "campus",
    column: Column = None,
    dry_run: DryRun = False,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Create or replace the people of a file. The exit code is 1 if any line was refused."""
    from laurels.cli.people_file import RecordFile, show  # noqa: PLC0415  # SQLAlchemy, which --help saves

    session, records = CommandSession(data_dir, as_json=json), RecordFile(file, Person, column or ())
    if dry_run:
        show(session, records.check(session))
    else:
        show(session, records.put(session, lambda laurels: laurels.people_directory, project))


@app.command(name="list")
def list_people(
    *,
    project: Project = "campus",
    prefix: Prefix = None,
    limit: Annotated[int, typer.Option(metavar="N", help="How many to list.")] = 100,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """List people, or those whose id or name begins with a text."""
    session = CommandSession(data_dir, as_json=json)

    async def work(laurels: "Laurels") -> "PeopleList":
        return await laurels.people(project, prefix=prefix, limit=limit)

    found = session.run(work)
    picture = table("id", "name", "place", "timezone", "avatar")
    for each in found.people:
        picture.add_row(
            *(Text(printable(value or "")) for value in (each.id, each.name, each.place, each.timezone)),
            Text(printable(each.avatar_url or ""), overflow="ellipsis", no_wrap=True),
        )
    session.show(found, picture if found.people else "There are no such people.")


@app.command(name="show")
def show_person(
    person: Id, *, project: Project = "campus", data_dir: DataDir = None, json: Json = False
) -> None:
    """Show a person."""
    session = CommandSession(data_dir, as_json=json)
    session.show(*_shown(session.run(lambda laurels: laurels.person(project, person))))


@app.command(name="set")
def set_person(  # noqa: PLR0913  # each is an option of the command
    person: Id,
    *,
    project: Project = "campus",
    name: Annotated[str | None, typer.Option(metavar="TEXT", help="The name; '' removes it.")] = None,
    avatar_url: Annotated[
        str | None, typer.Option(metavar="URL", help="The URL of a picture; '' removes it.")
    ] = None,
    place: Annotated[
        str | None, typer.Option(metavar="PLACE", help="The id of a place; '' removes it.")
    ] = None,
    timezone: Annotated[
        str | None, typer.Option(metavar="ZONE", help="Such as Europe/Oslo; '' removes it.")
    ] = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Create a person, or change what is given."""
    session = CommandSession(data_dir, as_json=json)
    given = {"name": name, "avatar_url": avatar_url, "place": place, "timezone": timezone}

    async def work(laurels: "Laurels") -> Person:
        try:
            known = await laurels.person(project, person)
        except NotFound:
            known = Person(person)
        about = {field: getattr(known, field) if new is None else new or None for field, new in given.items()}
        return await laurels.put_person(project, person, **about)

    session.show(*_shown(session.run(work)))


@app.command(name="remove")
def remove_person(
    person: Id, *, project: Project = "campus", data_dir: DataDir = None, json: Json = False
) -> None:
    """Forget what is known about a person. Scores stay; `laurels erase` takes them too."""
    session = CommandSession(data_dir, as_json=json)
    if not session.run(lambda laurels: laurels.remove_person(project, person)):
        raise NotFound(f"{project}: there is no person {person!r}")
    session.show({"removed": person}, f"{person} is forgotten")


@app.command(name="export")
def export_person(
    person: Id, *, project: Project = "campus", data_dir: DataDir = None, json: Json = False
) -> None:
    """Print everything that is kept about a member, as JSON."""
    import msgspec  # noqa: PLC0415  # 30 ms, which --help saves

    session = CommandSession(data_dir, as_json=True)
    del json

    async def work(laurels: "Laurels") -> "MemberExport":
        whole = part = await laurels.export_member(project, person)
        while part.next:
            part = await laurels.export_member(project, person, cursor=part.next)
            whole.journal.extend(part.journal)
        return msgspec.structs.replace(whole, next=None)

    session.show(session.run(work), "")


def _shown(person: Person) -> tuple[Person, str]:
    about = {"place": person.place, "timezone": person.timezone, "avatar": person.avatar_url}
    told = "".join(f", {name} {value}" for name, value in about.items() if value)
    return person, f"{person.id}: {person.name or 'without a name'}{told}"
