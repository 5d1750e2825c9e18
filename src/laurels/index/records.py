"""The records of some keys, as instances of their model: one query, whatever their number."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import ARRAY, String, any_, cast, literal, select, tuple_
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm.attributes import instance_state

from laurels.index.declare import declared, mapper_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import ColumnElement, Result, Select
    from sqlalchemy.ext.asyncio import AsyncEngine
    from sqlalchemy.orm import Session

Model = TypeVar("Model")


async def fetch(
    engine: AsyncEngine, model: type[Model], keys: Sequence[Any], session: AsyncSession | None = None
) -> dict[Any, Model]:
    """Those that there are; in the caller's session, or detached."""
    if not keys:
        return {}
    chosen = select(model).where(_is_one_of(model, keys))
    if session is None:
        own = AsyncSession(engine, expire_on_commit=False)
        found = await own.run_sync(_loaded_and_detached, model, chosen)
    else:
        found = _records(model, await session.execute(chosen))
    if len(declared(model)[0].key) == 1:
        return {_identity(each)[0]: each for each in found}
    return {_identity(each): each for each in found}


def _is_one_of(model: type[Any], keys: Sequence[Any]) -> ColumnElement[bool]:
    """As one parameter, where the key is one column: what is prepared does for any number of them."""
    columns, kinds = declared(model)[0].key, declared(model)[0].members.kinds
    column = columns[0]
    if len(columns) > 1:
        return tuple_(*columns).in_([tuple(key) for key in keys])
    array = ARRAY(column.type)
    if kinds == ("text",):
        return column == any_(literal(list(keys), array))
    # Nothing is to be quoted: written by ourselves, a thousand are fetched in nine tenths of the time.
    return column == any_(cast(literal("{" + ",".join(map(str, keys)) + "}", String), array))


def _loaded_and_detached(session: Session, model: type[Model], chosen: Select[Model]) -> Sequence[Model]:
    """All in one step, for each is dear to wait for. Committed, though nothing was changed: after a ROLLBACK,
    psycopg forgets the statements that it has prepared.
    """
    with session, session.begin():
        return _records(model, session.execute(chosen))


def _records(model: type[Model], result: Result[Model]) -> Sequence[Model]:
    return (result.unique() if _comes_in_several_rows(model) else result).scalars().all()


@cache
def _comes_in_several_rows(model: type[Any]) -> bool:
    """Whether a record may come with those of a relationship, by a join."""
    mappers = mapper_of(model).self_and_descendants
    return any(each.lazy in ("joined", False) for mapper in mappers for each in mapper.relationships)


def _identity(record: object) -> tuple[Any, ...]:
    """As `inspect(record).identity`, in a quarter of the time."""
    key = instance_state(record).key
    if key is None:
        raise AssertionError("a record that was loaded has an identity")
    return tuple(key[1])
