"""API keys: shown once, stored as digests."""

from __future__ import annotations

import secrets
import string
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID, uuid4

from sqlalchemy import func, insert, or_, select, update
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import IntegrityError

from laurels.errors import Conflict, InvalidInput
from laurels.postgres.engine import take_turn
from laurels.postgres.tables import api_keys

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from sqlalchemy import ColumnElement, RowMapping

    from laurels.postgres.engine import Postgres

Scope = Literal["read", "submit", "admin"]
SCOPES: tuple[Scope, ...] = ("read", "submit", "admin")
EVERY_PROJECT = "*"
LONGEST_LABEL = 200

_PREFIX_CHARACTERS = string.ascii_lowercase + string.digits


@dataclass(frozen=True)
class ApiKey:
    id: UUID
    prefix: str
    """The public part of the key: `lk_` and eight characters, or the label of an ensured key."""
    project: str
    scopes: frozenset[Scope]
    label: str
    created_at: datetime
    revoked_at: datetime | None


Announce = Callable[[str], Awaitable[None]]


def name_of_key(identity: UUID) -> str:
    """The name of a key in revocations."""
    return f"key:{identity}"


class KeyStore:
    """`announce` is called after a key was revoked or got another secret."""

    def __init__(self, postgres: Postgres, announce: Announce) -> None:
        self._postgres = postgres
        self._announce = announce

    async def create(self, project: str, scopes: Collection[Scope], label: str = "") -> tuple[ApiKey, str]:
        """Creates a key. The secret is returned once and cannot be read again."""
        prefix = "lk_" + "".join(secrets.choice(_PREFIX_CHARACTERS) for _ in range(8))
        secret = f"{prefix}_{secrets.token_urlsafe(32)}"
        values = _values(prefix, secret, project, scopes, label)
        async with self._postgres.writing() as connection:
            created = await connection.execute(insert(api_keys).values(values).returning(*_SHOWN))
            return _api_key(created.mappings().one()), secret

    async def ensure(self, secret: str, project: str, scopes: Collection[Scope], label: str) -> ApiKey:
        """Makes a key with a given secret active: `bootstrap`, `demo`.

        There is one such key for each label, which is its prefix: another secret replaces the previous one,
        and a revoked key becomes active again.
        """
        values = _values(label, secret, project, scopes, label)
        new = postgresql.insert(api_keys).values(values)
        replaced = {name: new.excluded[name] for name in ("digest", "project", "scopes")}
        ensured = new.on_conflict_do_update(
            index_elements=[api_keys.c.prefix], set_={**replaced, "revoked_at": None}
        ).returning(*_SHOWN)
        try:
            async with self._postgres.writing() as connection:
                await take_turn(connection, f"key:{label}")
                key = _api_key((await connection.execute(ensured)).mappings().one())
        except IntegrityError as error:
            raise Conflict(
                f"another key has the same secret as the key {label!r}: choose a new one"
            ) from error
        await self._announce(name_of_key(key.id))
        return key

    async def keys(self, project: str | None = None) -> list[ApiKey]:
        """The keys of one project or all, oldest first, revoked ones included."""
        listed = select(*_SHOWN).order_by(api_keys.c.created_at, api_keys.c.prefix)
        if project is not None:
            listed = listed.where(api_keys.c.project == project)
        async with self._postgres.reading() as connection:
            return [_api_key(row) for row in (await connection.execute(listed)).mappings()]

    async def revoke(self, prefix_or_id: str, *, project: str | None = None) -> bool:
        """Revokes an active key (of this project); returns whether there was one."""
        chosen: list[ColumnElement[bool]] = [api_keys.c.prefix == prefix_or_id]
        if (identity := _uuid(prefix_or_id)) is not None:
            chosen.append(api_keys.c.id == identity)
        revoked = (
            update(api_keys)
            .where(or_(*chosen), api_keys.c.revoked_at.is_(None))
            .values(revoked_at=func.now())
            .returning(api_keys.c.id)
        )
        if project is not None:
            revoked = revoked.where(api_keys.c.project == project)
        identities: list[UUID] = []
        try:
            async with self._postgres.writing() as connection:
                identities = list((await connection.execute(revoked)).scalars())
        finally:  # also when the commit was not answered
            for each in identities:
                await self._announce(name_of_key(each))
        return bool(identities)

    async def find(self, secret: str) -> ApiKey | None:
        """The active key with this secret.

        The index compares digests, not secrets. Its timing can only reveal something about a hash that the
        caller cannot control, so no comparison has to take constant time.
        """
        return await self.find_by_digest(digest_of(secret))

    async def find_by_digest(self, digest: bytes) -> ApiKey | None:
        """The active key whose secret has this digest."""
        found = select(*_SHOWN).where(api_keys.c.digest == digest, api_keys.c.revoked_at.is_(None))
        async with self._postgres.reading() as connection:
            row = (await connection.execute(found)).mappings().one_or_none()
            return None if row is None else _api_key(row)


_SHOWN = tuple(column for column in api_keys.c if column.name != "digest")


def _values(prefix: str, secret: str, project: str, scopes: Collection[Scope], label: str) -> dict[str, Any]:
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown or not scopes:
        raise InvalidInput.at("scopes", f"must be one or more of {', '.join(SCOPES)}")
    return {
        "id": uuid4(),
        "prefix": prefix,
        "digest": digest_of(secret),
        "project": project,
        "scopes": [scope for scope in SCOPES if scope in scopes],
        "label": check_label(label),
    }


def check_label(label: str) -> str:
    if "\x00" in label or len(label) > LONGEST_LABEL:
        raise InvalidInput.at("label", f"must be at most {LONGEST_LABEL} characters, none of them NUL")
    return label


def digest_of(secret: str) -> bytes:
    """The stored form of a secret."""
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _api_key(row: RowMapping) -> ApiKey:
    fields: dict[str, Any] = {**row, "scopes": frozenset(row["scopes"])}
    return ApiKey(**fields)
