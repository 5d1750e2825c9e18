"""The secrets of projects, which verify players' tokens and signatures.

A secret made by Laurels is shown once and stored as it is, because HMAC needs it. A project may share no
secret instead: it signs tokens with a private key of its own and stores the public key here.
"""

from __future__ import annotations

import secrets
import string
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from sqlalchemy import func, insert, select, update

from laurels.access.store.api_keys import Announce, check_label
from laurels.errors import Conflict, InvalidInput
from laurels.postgres.engine import take_turn
from laurels.postgres.tables import project_secrets
from laurels.wording import one_of

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import RowMapping

    from laurels.postgres.engine import Postgres

Use = Literal["players", "signatures"]
Algorithm = Literal["HS256", "EdDSA", "ES256", "RS256"]
USES: Final[tuple[Use, ...]] = get_args(Use)
ALGORITHMS: Final[tuple[Algorithm, ...]] = get_args(Algorithm)
MADE_HERE: Final = "HS256"
# The old one and the new one, while a project changes its secret.
MOST_ACTIVE: Final = 2
LEAST_RSA_BITS: Final = 2048
LONGEST_PUBLIC_KEY: Final = 10_000

_ID_CHARACTERS = string.ascii_lowercase + string.digits


@dataclass(frozen=True)
class ProjectSecret:
    id: str
    """`ls_` and eight characters; a token names it as `kid`."""
    project: str
    use: Use
    algorithm: Algorithm
    required: bool
    """For signatures: whether submissions without one are refused."""
    label: str
    created_at: datetime
    revoked_at: datetime | None


@dataclass(frozen=True)
class ActiveSecret:
    """An active secret with its `key`: the secret itself, or a public key as PEM."""

    id: str
    use: Use
    algorithm: Algorithm
    required: bool
    key: str


@dataclass(frozen=True)
class NewSecret:
    use: str
    algorithm: str | None = None
    public_key: str | None = None
    required: bool = False
    label: str = ""


def name_of_secrets(project: str) -> str:
    """The name of a project's secrets in revocations."""
    return f"secrets:{project}"


class SecretStore:
    """`announce` is called after a project's secrets have changed."""

    def __init__(self, postgres: Postgres, announce: Announce) -> None:
        self._postgres = postgres
        self._announce = announce

    async def create(self, project: str, wanted: NewSecret) -> tuple[ProjectSecret, str | None]:
        """Creates an active secret. What Laurels generated is returned once and cannot be read again."""
        identity = "ls_" + "".join(secrets.choice(_ID_CHARACTERS) for _ in range(8))
        use, algorithm = _use(wanted), _algorithm(wanted)
        made = f"{identity}_{secrets.token_urlsafe(32)}" if algorithm == MADE_HERE else None
        values = {
            "id": identity,
            "project": project,
            "use": use,
            "algorithm": algorithm,
            "key": made or _public_key(wanted.public_key or "", algorithm),
            "required": wanted.required,
            "label": check_label(wanted.label),
        }
        in_force = (project_secrets.c.project == project, project_secrets.c.revoked_at.is_(None))
        counted = select(func.count()).where(*in_force, project_secrets.c.use == use)
        async with self._postgres.writing() as connection:
            await take_turn(connection, f"secrets:{project}:{use}")
            if (await connection.execute(counted)).scalar_one() >= MOST_ACTIVE:
                raise Conflict(
                    f"{project} already has {MOST_ACTIVE} secrets for {use} in force: revoke one first"
                )
            created = await connection.execute(insert(project_secrets).values(values).returning(*_SHOWN))
            secret = _project_secret(created.mappings().one())
        await self._announce(name_of_secrets(project))
        return secret, made

    async def secrets(self, project: str | None = None) -> list[ProjectSecret]:
        """The secrets of one project or all, oldest first, revoked ones included."""
        listed = select(*_SHOWN).order_by(project_secrets.c.created_at, project_secrets.c.id)
        if project is not None:
            listed = listed.where(project_secrets.c.project == project)
        async with self._postgres.reading() as connection:
            return [_project_secret(row) for row in (await connection.execute(listed)).mappings()]

    async def active(self, project: str) -> tuple[ActiveSecret, ...]:
        """The active secrets of a project, newest first."""
        columns = [project_secrets.c[name] for name in ("id", "use", "algorithm", "required", "key")]
        found = (
            select(*columns)
            .where(project_secrets.c.project == project, project_secrets.c.revoked_at.is_(None))
            .order_by(project_secrets.c.created_at.desc(), project_secrets.c.id)
        )
        async with self._postgres.reading() as connection:
            return tuple(ActiveSecret(*row) for row in await connection.execute(found))

    async def revoke(self, identity: str, *, project: str | None = None) -> bool:
        """Revokes an active secret (of this project); returns whether there was one."""
        revoked = (
            update(project_secrets)
            .where(project_secrets.c.id == identity, project_secrets.c.revoked_at.is_(None))
            .values(revoked_at=func.now())
            .returning(project_secrets.c.project)
        )
        if project is not None:
            revoked = revoked.where(project_secrets.c.project == project)
        projects: list[str] = []
        try:
            async with self._postgres.writing() as connection:
                projects = list((await connection.execute(revoked)).scalars())
        finally:  # also when the commit was not answered
            for each in projects:
                await self._announce(name_of_secrets(each))
        return bool(projects)


_SHOWN = tuple(column for column in project_secrets.c if column.name != "key")


def _project_secret(row: RowMapping) -> ProjectSecret:
    fields: dict[str, Any] = {**row}
    return ProjectSecret(**fields)


def _use(wanted: NewSecret) -> Use:
    for use in USES:
        if wanted.use == use:
            break
    else:
        raise InvalidInput.at("use", one_of(USES, wanted.use))
    if wanted.required and use != "signatures":
        raise InvalidInput.at("required", "is for signatures only: a player's token is always verified")
    return use


def _algorithm(wanted: NewSecret) -> Algorithm:
    given = wanted.algorithm or MADE_HERE
    allowed = ALGORITHMS if wanted.use == "players" else (MADE_HERE,)
    for algorithm in allowed:
        if given == algorithm:
            break
    else:
        raise InvalidInput.at("algorithm", f"must be {' or '.join(allowed)} for {wanted.use}")
    if algorithm == MADE_HERE and wanted.public_key is not None:
        raise InvalidInput.at("public_key", f"must be left out for {MADE_HERE}: Laurels makes the secret")
    if algorithm != MADE_HERE and not wanted.public_key:
        raise InvalidInput.at("public_key", f"is required for {algorithm}: a public key as PEM")
    return algorithm


def _public_key(given: str, algorithm: Algorithm) -> str:
    """The key as PEM; raises `InvalidInput` unless it fits the algorithm."""
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415  # as below
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415  # slow to load, seldom needed
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa  # noqa: PLC0415  # as above

    try:
        key = serialization.load_pem_public_key(given[:LONGEST_PUBLIC_KEY].encode())
    except (ValueError, TypeError, UnicodeEncodeError, UnsupportedAlgorithm) as error:
        raise InvalidInput.at(
            "public_key", "must be a public key as PEM, beginning with `-----BEGIN PUBLIC KEY-----`"
        ) from error
    fits, needs = {
        "EdDSA": (isinstance(key, ed25519.Ed25519PublicKey), "an Ed25519 key"),
        "ES256": (
            isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1),
            "a key on the curve P-256",
        ),
        "RS256": (
            isinstance(key, rsa.RSAPublicKey) and key.key_size >= LEAST_RSA_BITS,
            f"an RSA key of {LEAST_RSA_BITS} bits or more",
        ),
    }[algorithm]
    if not fits:
        raise InvalidInput.at("public_key", f"{algorithm} needs {needs}")
    encoded = key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return encoded.decode()
