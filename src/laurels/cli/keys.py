"""`laurels keys`: creates, lists and revokes API keys."""

import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.console import Group
from rich.text import Text

from laurels.boards.names import NAME_PATTERN
from laurels.cli.options import DataDir, Json
from laurels.cli.output import printable, table
from laurels.cli.session import CommandSession
from laurels.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from laurels.access.store.api_keys import ApiKey, Scope

app = typer.Typer(name="keys", help="Create, list and revoke API keys.", rich_markup_mode=None)


@app.command()
def create(
    project: Annotated[
        str,
        typer.Argument(
            metavar="PROJECT", help="The key's project, or '*' for every project.", show_default=False
        ),
    ],
    *,
    scope: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SCOPE", help="read, submit or admin. Can be repeated. (default: read and submit)"
        ),
    ] = None,
    label: Annotated[str, typer.Option(metavar="TEXT", help="What the key is for.")] = "",
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Create a key and show it once. Laurels keeps only its digest."""
    from laurels.access.store.api_keys import EVERY_PROJECT  # noqa: PLC0415  # SQLAlchemy, which --help saves

    if project != EVERY_PROJECT and not re.fullmatch(NAME_PATTERN, project):
        raise InvalidInput.at("project", "1 to 64 of A-Z a-z 0-9 - _ . or '*' for every project")
    scopes = cast("list[Scope]", scope or ["read", "submit"])  # the store refuses unknown ones
    session = CommandSession(data_dir, as_json=json)
    key, secret = session.run(lambda laurels: laurels.keys.create(project, scopes, label))
    note = Text(f"Shown once. Revoke it with: laurels keys revoke {key.prefix}", "dim")
    session.show(
        {**_document(key), "key": secret}, Group(Text(secret, "bold", no_wrap=True, overflow="ignore"), note)
    )


@app.command(name="list")
def list_keys(
    *,
    project: Annotated[str | None, typer.Option(metavar="PROJECT", help="Only keys of this project.")] = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """List keys, oldest first, including revoked ones."""
    session = CommandSession(data_dir, as_json=json)
    keys = session.run(lambda laurels: laurels.keys.keys(project))
    picture = table("key", "project", "scopes", "label", "made", "state")
    for key in keys:
        state = Text("revoked", "red") if key.revoked_at else Text("in force", "green")
        made = f"{key.created_at:%Y-%m-%d %H:%M}"
        names = (key.prefix, key.project, " ".join(sorted(key.scopes)), key.label, made)
        picture.add_row(*(Text(printable(name)) for name in names), state)
    session.show([_document(key) for key in keys], picture if keys else "There are no keys.")


@app.command()
def revoke(
    key: Annotated[
        str,
        typer.Argument(
            metavar="KEY", help="The key's prefix (lk_ and 8 characters) or id.", show_default=False
        ),
    ],
    *,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Revoke a key permanently."""
    session = CommandSession(data_dir, as_json=json)
    prefix = "_".join(key.split("_")[:2]) if key.startswith("lk_") else key
    if not session.run(lambda laurels: laurels.keys.revoke(prefix)):
        raise NotFound(f"no key {prefix} is in force; `laurels keys list` shows those that are")
    session.show({"revoked": prefix}, f"{prefix} is revoked")


def _document(key: "ApiKey") -> dict[str, object]:
    return {**asdict(key), "scopes": sorted(key.scopes)}
