"""Loads the records with given keys as instances of their model, in one query."""

from __future__ import annotations

import asyncio
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from sqlalchemy import ARRAY, String, any_, bindparam, cast, select, tuple_
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession
from sqlalchemy.orm import Session
from sqlalchemy.orm.attributes import instance_state

from laurels.index.declare import declared, mapper_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Engine, Result, Select

Model = TypeVar("Model")


async def fetch(
    engine: AsyncEngine | Engine,
    model: type[Model],
    keys: Sequence[Any],
    session: AsyncSession | Session | None = None,
) -> dict[Any, Model]:
    """The existing records by key; in the given session, or detached. A session without async is used in a
    thread, while its own thread waits.
    """
    if not keys:
        return {}
    query: _Query[Model] = _query(model)
    parameters = _parameters(model, keys)
    match session:
        case AsyncSession():
            found = _records(query, await session.execute(query.statement, parameters))
        case Session():
            found = await asyncio.to_thread(_load, session, query, parameters)
        case None:
            found = await _detached(engine, query, parameters)
    # As `inspect(record).identity`, in a quarter of the time.
    identities = [key[1] for key in (instance_state(each).key for each in found) if key]
    if len(declared(model)[0].key) == 1:
        return {identity[0]: each for identity, each in zip(identities, found, strict=True)}
    return {tuple(identity): each for identity, each in zip(identities, found, strict=True)}


async def _detached(
    engine: AsyncEngine | Engine, query: _Query[Model], parameters: dict[str, Any]
) -> Sequence[Model]:
    if isinstance(engine, AsyncEngine):
        own = AsyncSession(engine, expire_on_commit=False)
        return await own.run_sync(_load_detached, query, parameters)
    session = Session(engine, expire_on_commit=False)
    return await asyncio.to_thread(_load_detached, session, query, parameters)


class _Query(NamedTuple, Generic[Model]):
    """Cached for each model: composing it takes a quarter of the time of fetching ten records."""

    statement: Select[Model]
    has_joins: bool
    """A record may come in several rows, because a relationship is loaded by a join."""


@cache
def _query(model: type[Any]) -> _Query[Any]:
    columns = declared(model)[0].key
    array = ARRAY(columns[0].type)
    is_one = columns[0] == any_(
        bindparam("keys", type_=array) if _is_text(model) else cast(bindparam("keys", type_=String), array)
    )
    is_wanted = is_one if len(columns) == 1 else tuple_(*columns).in_(bindparam("keys", expanding=True))
    mappers = mapper_of(model).self_and_descendants
    has_joins = any(each.lazy in ("joined", False) for mapper in mappers for each in mapper.relationships)
    return _Query(select(model).where(is_wanted), has_joins)


def _parameters(model: type[Any], keys: Sequence[Any]) -> dict[str, Any]:
    if len(declared(model)[0].key) > 1:
        return {"keys": [tuple(key) for key in keys]}
    if _is_text(model):
        return {"keys": list(keys)}
    # No value needs quotes. Writing the array ourselves saves a tenth of the time for a thousand records.
    return {"keys": "{" + ",".join(map(str, keys)) + "}"}


def _is_text(model: type[Any]) -> bool:
    return declared(model)[0].keys.kinds[0] == "text"


def _load(session: Session, query: _Query[Model], parameters: dict[str, Any]) -> Sequence[Model]:
    return _records(query, session.execute(query.statement, parameters))


def _load_detached(session: Session, query: _Query[Model], parameters: dict[str, Any]) -> Sequence[Model]:
    """Runs as one synchronous step, because each await is expensive here. Commits although nothing has
    changed, because psycopg forgets its prepared statements after a ROLLBACK.
    """
    with session, session.begin():
        return _load(session, query, parameters)


def _records(query: _Query[Model], result: Result[Model]) -> Sequence[Model]:
    return (result.unique() if query.has_joins else result).scalars().all()
