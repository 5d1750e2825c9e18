"""API keys: made, listed and revoked."""

import re
from typing import Annotated, cast

import typer
from rich.console import Group
from rich.text import Text

from laurels.access.store.keys import EVERY_PROJECT, ApiKey, Scope
from laurels.boards.declared import NAME_PATTERN
from laurels.cli.options import DataDir, Json
from laurels.cli.output import printable, table
from laurels.cli.session import CommandSession
from laurels.errors import InvalidInput, NotFound

app = typer.Typer(help="API keys.", rich_markup_mode=None)


@app.command()
def create(
    project: Annotated[
        str,
        typer.Argument(
            metavar="PROJECT", help="Whose key it is; '*' is every project's.", show_default=False
        ),
    ],
    *,
    scope: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SCOPE", help="read, submit or admin; can be repeated. (default: read and submit)"
        ),
    ] = None,
    label: Annotated[str, typer.Option(metavar="TEXT", help="What it is for.")] = "",
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Make a key. It is shown once: only its digest is kept."""
    if project != EVERY_PROJECT and not re.fullmatch(NAME_PATTERN, project):
        raise InvalidInput.at("project", "1 to 64 of A-Z a-z 0-9 - _ . or '*' for every project")
    scopes = cast("list[Scope]", scope or ["read", "submit"])  # what is none is refused by the store
    session = CommandSession(data_dir, as_json=json)
    key, secret = session.run(lambda laurels: laurels.keys.create(project, scopes, label))
    note = Text(f"Shown once. Revoke it with: laurels keys revoke {key.prefix}", "dim")
    session.show(
        {**_document(key), "key": secret}, Group(Text(secret, "bold", no_wrap=True, overflow="ignore"), note)
    )


@app.command(name="list")
def list_keys(
    *,
    project: Annotated[str | None, typer.Option(metavar="PROJECT", help="Only the keys of this one.")] = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """List the keys, oldest first, revoked ones too."""
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
            metavar="KEY", help="Its prefix (lk_ and 8 characters), or its id.", show_default=False
        ),
    ],
    *,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Put a key out of force, for good."""
    session = CommandSession(data_dir, as_json=json)
    prefix = "_".join(key.split("_")[:2]) if key.startswith("lk_") else key
    if not session.run(lambda laurels: laurels.keys.revoke(prefix)):
        raise NotFound(f"no key {prefix} is in force; `laurels keys list` shows those that are")
    session.show({"revoked": prefix}, f"{prefix} is revoked")


def _document(key: ApiKey) -> dict[str, object]:
    return {
        "id": key.id,
        "prefix": key.prefix,
        "project": key.project,
        "scopes": sorted(key.scopes),
        "label": key.label,
        "created_at": key.created_at,
        "revoked_at": key.revoked_at,
    }
