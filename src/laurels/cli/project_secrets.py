"""`laurels secrets`: creates, lists and revokes the secrets behind players' tokens and signatures."""

import re
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group
from rich.text import Text

from laurels.boards.names import NAME_PATTERN
from laurels.cli.options import DataDir, Json
from laurels.cli.output import printable, table
from laurels.cli.session import CommandSession
from laurels.errors import InvalidInput, NotFound

app = typer.Typer(name="secrets", help="Create, list and revoke secrets of projects.", rich_markup_mode=None)


@app.command()
def create(  # noqa: PLR0913  # a parameter is an option
    project: Annotated[str, typer.Argument(metavar="PROJECT", help="The project.", show_default=False)],
    use: Annotated[
        str,
        typer.Argument(metavar="USE", help="players (for their tokens) or signatures.", show_default=False),
    ],
    *,
    algorithm: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="For players' tokens: HS256, EdDSA, ES256 or RS256. (default: HS256)"
        ),
    ] = None,
    public_key: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Verify tokens with this public key (PEM) instead of a secret."),
    ] = None,
    required: Annotated[
        bool, typer.Option("--required", help="For signatures: refuse unsigned submissions.")
    ] = False,
    label: Annotated[str, typer.Option(metavar="TEXT", help="What the secret is for.")] = "",
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Create a secret and show it once, or store a public key."""
    from laurels.access.store.secrets import NewSecret  # noqa: PLC0415  # SQLAlchemy, which --help saves

    if not re.fullmatch(NAME_PATTERN, project):
        raise InvalidInput.at("project", "1 to 64 of A-Z a-z 0-9 - _ .")
    wanted = NewSecret(use, algorithm, _read(public_key), required, label)
    session = CommandSession(data_dir, as_json=json)
    secret, made = session.run(lambda laurels: laurels.secrets.create(project, wanted))
    note = Text(f"Revoke it with: laurels secrets revoke {secret.id}", "dim")
    shown = Text(made or secret.id, "bold", no_wrap=True, overflow="ignore")
    session.show({**asdict(secret), "secret": made}, Group(shown, note))


@app.command(name="list")
def list_secrets(
    *,
    project: Annotated[
        str | None, typer.Option(metavar="PROJECT", help="Only secrets of this project.")
    ] = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """List secrets, oldest first, including revoked ones. The secrets themselves are never shown."""
    session = CommandSession(data_dir, as_json=json)
    secrets = session.run(lambda laurels: laurels.secrets.secrets(project))
    picture = table("secret", "project", "use", "algorithm", "label", "made", "state")
    for secret in secrets:
        state = Text("revoked", "red") if secret.revoked_at else Text("in force", "green")
        use = f"{secret.use}, required" if secret.required else secret.use
        made = f"{secret.created_at:%Y-%m-%d %H:%M}"
        names = (secret.id, secret.project, use, secret.algorithm, secret.label, made)
        picture.add_row(*(Text(printable(name)) for name in names), state)
    session.show(secrets, picture if secrets else "There are no secrets.")


@app.command()
def revoke(
    secret: Annotated[
        str, typer.Argument(metavar="ID", help="The secret's id: ls_ and 8 characters.", show_default=False)
    ],
    *,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Revoke a secret permanently."""
    session = CommandSession(data_dir, as_json=json)
    identity = "_".join(secret.split("_")[:2])
    if not session.run(lambda laurels: laurels.secrets.revoke(identity)):
        raise NotFound(f"no secret {identity} is in force; `laurels secrets list` shows those that are")
    session.show({"revoked": identity}, f"{identity} is revoked")


def _read(path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise InvalidInput.at("public_key", f"{path} cannot be read: {reason}") from None
