"""`laurels places`: the names and timezones of places."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from laurels.cli.options import Column, DataDir, DryRun, Json, Prefix, Project, RecordsFile
from laurels.cli.output import printable, table
from laurels.cli.session import CommandSession
from laurels.errors import NotFound
from laurels.people.records import Place

if TYPE_CHECKING:
    from laurels.engine import Laurels
    from laurels.people.records import PlaceList

app = typer.Typer(
    name="places", help="Import, list and change the places of a project.", rich_markup_mode=None
)

Id = Annotated[str, typer.Argument(metavar="ID", help="The id of the place.", show_default=False)]


@app.command(name="import")
def import_places(  # noqa: PLR0913  # each is an option of the command
    file: RecordsFile,
    *,
    project: Project = "campus",
    column: Column = None,
    dry_run: DryRun = False,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Create or replace the places of a file. The exit code is 1 if any line was refused."""
    from laurels.cli.people_file import RecordFile, show  # noqa: PLC0415  # SQLAlchemy, which --help saves

    session, records = CommandSession(data_dir, as_json=json), RecordFile(file, Place, column or ())
    if dry_run:
        show(session, records.check(session))
    else:
        show(session, records.put(session, lambda laurels: laurels.places_directory, project))


@app.command(name="list")
def list_places(
    *,
    project: Project = "campus",
    prefix: Prefix = None,
    limit: Annotated[int, typer.Option(metavar="N", help="How many to list.")] = 100,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """List places, or those whose id or name begins with a text."""
    session = CommandSession(data_dir, as_json=json)

    async def work(laurels: "Laurels") -> "PlaceList":
        return await laurels.places(project, prefix=prefix, limit=limit)

    found = session.run(work)
    picture = table("id", "name", "timezone")
    for each in found.places:
        picture.add_row(*(Text(printable(value or "")) for value in (each.id, each.name, each.timezone)))
    session.show(found, picture if found.places else "There are no such places.")


@app.command(name="show")
def show_place(
    place: Id, *, project: Project = "campus", data_dir: DataDir = None, json: Json = False
) -> None:
    """Show a place."""
    session = CommandSession(data_dir, as_json=json)
    session.show(*_shown(session.run(lambda laurels: laurels.place(project, place))))


@app.command(name="set")
def set_place(  # noqa: PLR0913  # each is an option of the command
    place: Id,
    *,
    project: Project = "campus",
    name: Annotated[str | None, typer.Option(metavar="TEXT", help="The name; '' removes it.")] = None,
    timezone: Annotated[
        str | None, typer.Option(metavar="ZONE", help="Such as Europe/Oslo; '' removes it.")
    ] = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Create a place, or change what is given."""
    session = CommandSession(data_dir, as_json=json)
    given = {"name": name, "timezone": timezone}

    async def work(laurels: "Laurels") -> Place:
        try:
            known = await laurels.place(project, place)
        except NotFound:
            known = Place(place)
        about = {field: getattr(known, field) if new is None else new or None for field, new in given.items()}
        return await laurels.put_place(project, place, **about)

    session.show(*_shown(session.run(work)))


@app.command(name="remove")
def remove_place(
    place: Id, *, project: Project = "campus", data_dir: DataDir = None, json: Json = False
) -> None:
    """Forget what is known about a place."""
    session = CommandSession(data_dir, as_json=json)
    if not session.run(lambda laurels: laurels.remove_place(project, place)):
        raise NotFound(f"{project}: there is no place {place!r}")
    session.show({"removed": place}, f"{place} is forgotten")


def _shown(place: Place) -> tuple[Place, str]:
    return place, f"{place.id}: {place.name or 'without a name'}, {place.timezone or 'the default timezone'}"
