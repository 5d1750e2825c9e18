"""The SQL of board definitions: those in force, and retired ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypedDict, Unpack

import msgspec
from pydantic import ValidationError
from sqlalchemy import (
    Text,
    and_,
    bindparam,
    cast,
    column,
    delete,
    false,
    func,
    insert,
    literal,
    literal_column,
    select,
    true,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from laurels.boards.definition import BoardDefinition, HoldLost, StoredBoard, field_errors
from laurels.boards.keys import BoardRef
from laurels.errors import Conflict, LaurelsError
from laurels.logs import get_logger
from laurels.postgres import tables
from laurels.postgres.engine import take_turn, take_turns

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from sqlalchemy import ColumnElement, RowMapping, Select, TableValuedAlias, TextClause
    from sqlalchemy.ext.asyncio import AsyncConnection

    from laurels.boards.definition import Owner
    from laurels.postgres.engine import Postgres

log = get_logger("laurels.archive")
_encode = msgspec.json.Encoder().encode

# Definitions that are shared by their JSON: the boards of a platform mostly differ in their names. One takes
# some 3 KB.
DEFINITIONS: Final = 1024

# The definition as text, by which it is shared.
_BOARD: Final = [
    cast(each, Text).label(each.name) if each.name == "definition" else each for each in tables.boards.columns
]
_DIGEST: Final = literal_column(tables.DIGEST.text, Text)
_RETIRED: Final = [
    cast(each, Text).label(each.name) if each.name == "definition" else each
    for each in tables.retired_definitions.columns
]


@dataclass(frozen=True)
class RetiredDefinition:
    """A definition that is no longer in force, but whose keys may still exist in Valkey."""

    number: int
    """From the sequence of versions, so above the retired version."""
    board: StoredBoard
    whole: bool
    """Whether all keys are to be deleted; else those that the next definition has no place for."""


class PutConditions(TypedDict, total=False):
    """The conditions of storing a definition."""

    expected_version: int
    """The version that the board must have, 0 for a new board; else `Conflict` is raised."""
    owner: Owner | None
    held: RetiredDefinition | None
    """The hold that the board must have; else `HoldLost` is raised."""
    check_others: Callable[[list[StoredBoard], list[StoredBoard]], None]
    """Raises if the definition's key templates clash with those of other boards: boards in force, and boards
    whose keys are still being deleted.
    """


class BoardStore:
    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres

    async def get(self, project: str, board: str) -> StoredBoard | None:
        async with self._postgres.reading() as connection:
            return await _read(connection, project, board)

    async def get_all(self, refs: Iterable[BoardRef]) -> dict[BoardRef, StoredBoard | LaurelsError]:
        """Those of these boards that exist, by one query; an error for one that cannot be read."""
        async with self._postgres.reading() as connection:
            return await _read_all(connection, refs)

    async def put_new(self, definitions: Mapping[BoardRef, BoardDefinition]) -> dict[BoardRef, StoredBoard]:
        """Creates those of these boards that do not exist, in one transaction. Returns them, and those that
        have the definition already. Leaves out all others: changed ones, those of a flow, and those whose
        earlier keys are still being deleted. As for `put`, calls for one board run one after the other.
        """
        async with self._postgres.writing() as connection:
            await take_turns(connection, sorted(f"board:{ref}" for ref in definitions))
            read = await _read_all(connection, definitions)
            left = {BoardRef(*row) for row in await connection.execute(_retired_among(definitions))}
            new = {ref: each for ref, each in definitions.items() if ref not in read and ref not in left}
            created = await _insert_all(connection, new) if new else []
        stored = {BoardRef(each.project, each.board): each for each in created}
        stored |= {
            ref: each
            for ref, each in read.items()
            if isinstance(each, StoredBoard) and each.owner is None and each.definition == definitions[ref]
        }
        return {ref: each for ref, each in stored.items() if ref not in left}

    async def put_changed(
        self, definitions: Mapping[BoardRef, tuple[int, BoardDefinition]]
    ) -> list[tuple[RetiredDefinition, StoredBoard]]:
        """Changes those of these boards that have this version, in one transaction. Returns the definition
        that each had, and the board. Leaves out those of a flow, and those whose earlier keys are still being
        deleted.
        """
        async with self._postgres.writing() as connection:
            await take_turns(connection, sorted(f"board:{ref}" for ref in definitions))
            read = await _read_all(connection, definitions)
            left = {BoardRef(*row) for row in await connection.execute(_retired_among(definitions))}
            changing = {
                ref: definition
                for ref, (version, definition) in definitions.items()
                if isinstance(stored := read.get(ref), StoredBoard)
                and (stored.version, stored.owner) == (version, None)
                and ref not in left
            }
            return await _update_all(connection, changing) if changing else []

    async def put(
        self,
        project: str,
        board: str,
        definition: BoardDefinition,
        **terms: Unpack[PutConditions],
    ) -> StoredBoard:
        """Creates the board or changes its definition. The same definition again changes nothing.

        Calls for one board run one after the other, and so do all calls with key templates.
        """
        expected_version, owner = terms.get("expected_version"), terms.get("owner")
        check_others, held = terms.get("check_others"), terms.get("held")
        async with self._postgres.writing() as connection:
            await take_turn(connection, f"board:{project}/{board}")
            if held:
                await _release(connection, held)
            if definition.keys and check_others:
                await take_turn(connection, "keys")
                check_others(*await _others_with_keys(connection, project, board))
            stored = await _read(connection, project, board)
            version = stored.version if stored else 0
            if expected_version is not None and expected_version != version:
                raise Conflict(
                    f"{project}/{board} was changed by another request; read it again, then repeat the change"
                )
            if await _retired(connection, project, board):
                raise Conflict(f"{project}/{board} is being dropped or changed by another request; try again")
            if stored is None:
                return replace(await _insert(connection, project, board, definition, owner), created=True)
            if (stored.definition, stored.owner) == (definition, owner):
                return stored
            await _retire(connection, stored, whole=False)
            return await _update(connection, project, board, definition, owner)

    async def drop(self, project: str, board: str, *, held: RetiredDefinition | None = None) -> bool:
        """Deletes the definition, and records that its keys are to be deleted; returns whether it existed.

        Raises `HoldLost` if the board no longer has the hold `held`.
        """
        async with self._postgres.writing() as connection:
            await take_turn(connection, f"board:{project}/{board}")
            if held:
                await _release(connection, held)
            stored = await _read(connection, project, board)
            if stored is None:
                return False
            await _retire(connection, stored, whole=True)
            await connection.execute(delete(tables.boards).where(_named(project, board)))
            return True

    async def hold(self, project: str, board: str, version: int) -> RetiredDefinition:
        """Records that a board is about to be barred from all calls. The number of the record is above the
        board's version; `settle` gives the board a version above the number.
        """
        async with self._postgres.writing() as connection:
            await take_turn(connection, f"board:{project}/{board}")
            stored = await _read(connection, project, board)
            if stored is None or stored.version != version:
                raise Conflict(f"{project}/{board} was changed by another request; read it again")
            if await _retired(connection, project, board):
                raise Conflict(f"{project}/{board} is being dropped or changed by another request; try again")
            await _retire(connection, stored, whole=False)
            return (await _retired(connection, project, board))[0]

    async def clear(self, project: str, board: str, version: int) -> None:
        """Records that the keys of a board are to be deleted while the board stays; raises `Conflict`."""
        async with self._postgres.writing() as connection:
            await take_turn(connection, f"board:{project}/{board}")
            stored = await _read(connection, project, board)
            if stored is None or stored.version != version:
                raise Conflict(f"{project}/{board} was changed by another request; read it again")
            await _retire(connection, stored, whole=True)

    async def retired(self, project: str, board: str) -> list[RetiredDefinition]:
        """The retired definitions of this name, oldest first."""
        async with self._postgres.reading() as connection:
            return await _retired(connection, project, board)

    async def all_retired(self, *, templated: bool = False) -> list[tuple[str, str]]:
        """Project and board of every retired definition, or of those with key templates."""
        retired = tables.retired_definitions
        names = select(retired.c.project, retired.c.board).distinct().order_by(*retired.c["project", "board"])
        if templated:
            names = names.where(retired.c.definition.has_key("keys"))
        async with self._postgres.reading() as connection:
            return [(row.project, row.board) for row in await connection.execute(names)]

    async def settle(self, done: Collection[RetiredDefinition]) -> None:
        """Deletes these records. A board that one of them barred gets a version above its number."""
        retired, boards = tables.retired_definitions, tables.boards
        barred = and_(boards.c.id == bindparam("of_board"), boards.c.version < bindparam("number"))
        raised = update(boards).where(barred).values(version=tables.board_version.next_value())
        async with self._postgres.writing() as connection:
            await connection.execute(
                delete(retired).where(retired.c.number.in_([each.number for each in done]))
            )
            await connection.execute(
                raised, [{"of_board": each.board.id, "number": each.number} for each in done]
            )

    async def by_id(self, board_id: int) -> StoredBoard | None:
        async with self._postgres.reading() as connection:
            found = await connection.execute(select(*_BOARD).where(tables.boards.c.id == board_id))
        row = found.mappings().one_or_none()
        return None if row is None else _stored(row)

    async def following(self, board_id: int, limit: int) -> tuple[list[StoredBoard], int | None]:
        """The next boards of all projects after an id, and the last id; None if these are the last ones.
        Leaves out boards whose definition this version of Laurels cannot read.
        """
        number = tables.boards.c.id
        listed = select(*_BOARD).where(number > board_id).order_by(number).limit(limit)
        async with self._postgres.reading() as connection:
            rows = (await connection.execute(listed)).mappings().all()
        found: list[StoredBoard] = []
        for row in rows:
            try:
                found.append(_stored(row))
            except LaurelsError as error:
                log.warning("skipped a board whose definition cannot be read", why=error.detail)
        return found, rows[-1]["id"] if len(rows) == limit else None

    async def first(self, limit: int) -> list[StoredBoard]:
        """The first boards of all projects, by name."""
        name = tables.boards.c["project", "board"]
        async with self._postgres.reading() as connection:
            rows = (await connection.execute(select(*_BOARD).order_by(*name).limit(limit))).mappings()
            return [_stored(row) for row in rows]

    async def projects(self, limit: int | None = None, after: str = "") -> list[str]:
        """Projects with boards, in order: all, or the first `limit` after one. Looks at one board of each."""
        project = tables.boards.c.project
        first = select(func.min(project).label("project")).where(project > after)
        each = first.cte("each", recursive=True)
        following = select(func.min(project)).where(project > each.c.project).scalar_subquery()
        each = each.union_all(select(following).where(each.c.project.is_not(None)))
        projects = select(each.c.project).where(each.c.project.is_not(None)).limit(limit)
        async with self._postgres.reading() as connection:
            return list((await connection.execute(projects)).scalars())

    async def matching(self, condition: TextClause, digest: str | None = None) -> list[StoredBoard]:
        """The boards of all projects that meet a condition of `postgres/tables.py`; with `digest`, those with
        this definition.
        """
        boards = select(*_BOARD).where(condition).order_by(*tables.boards.c["project", "board"])
        if digest is not None:
            boards = boards.where(digest == _DIGEST)
        async with self._postgres.reading() as connection:
            return [_stored(row) for row in (await connection.execute(boards)).mappings()]

    async def definitions(self, condition: TextClause) -> dict[str, StoredBoard]:
        """A board with each different definition among the boards that meet a condition, by the digest of the
        definition. Looks at one board of each.
        """
        boards = tables.boards
        lowest = select(func.min(_DIGEST).label("digest")).select_from(boards).where(condition)
        each = lowest.cte("each", recursive=True)
        following = lowest.where(each.c.digest < _DIGEST).scalar_subquery()
        each = each.union_all(select(following).where(each.c.digest.is_not(None)))
        one = select(*_BOARD).where(condition, each.c.digest == _DIGEST).limit(1).lateral()
        names = boards.columns.keys()
        async with self._postgres.reading() as connection:
            rows = (
                (await connection.execute(select(each.c.digest, *one.c).join(one, true()))).mappings().all()
            )
        return {row["digest"]: _stored({name: row[name] for name in names}) for row in rows}

    async def boards(self, project: str, limit: int | None = None, after: str = "") -> list[StoredBoard]:
        """The boards of a project, in order: all, or the first `limit` after one."""
        name = tables.boards.c.board
        is_listed = and_(tables.boards.c.project == project, name > after)
        boards = select(*_BOARD).where(is_listed).order_by(name).limit(limit)
        async with self._postgres.reading() as connection:
            return [_stored(row) for row in (await connection.execute(boards)).mappings()]


def _named(project: str | ColumnElement[str], board: str | ColumnElement[str]) -> ColumnElement[bool]:
    return and_(tables.boards.c.project == project, tables.boards.c.board == board)


async def _read(connection: AsyncConnection, project: str, board: str) -> StoredBoard | None:
    found = await connection.execute(select(*_BOARD).where(_named(project, board)))
    row = found.mappings().one_or_none()
    return None if row is None else _stored(row)


async def _read_all(
    connection: AsyncConnection, refs: Iterable[BoardRef]
) -> dict[BoardRef, StoredBoard | LaurelsError]:
    wanted = _names_of(refs)
    boards = select(*_BOARD).join(wanted, _named(wanted.c.project, wanted.c.board))
    found: dict[BoardRef, StoredBoard | LaurelsError] = {}
    for row in (await connection.execute(boards)).mappings():
        try:
            found[BoardRef(row["project"], row["board"])] = _stored(row)
        except LaurelsError as error:
            found[BoardRef(row["project"], row["board"])] = error
    return found


def _names_of(refs: Iterable[BoardRef], *definitions: list[str]) -> TableValuedAlias:
    """A table of these names, and of a definition for each if given."""
    names = list(refs)
    columns = [[ref.project for ref in names], [ref.board for ref in names], *definitions]
    labels = ("project", "board", "definition")[: len(columns)]
    return (
        func.unnest(*(literal(each, ARRAY(Text)) for each in columns))
        .table_valued(*(column(label, Text) for label in labels), name="named")
        .render_derived()
    )


def _retired_among(refs: Iterable[BoardRef]) -> Select[Any, Any]:
    named, retired = _names_of(refs), tables.retired_definitions
    is_named = and_(retired.c.project == named.c.project, retired.c.board == named.c.board)
    return select(retired.c.project, retired.c.board).join(named, is_named)


async def _others_with_keys(
    connection: AsyncConnection, project: str, board: str
) -> tuple[list[StoredBoard], list[StoredBoard]]:
    """Other boards with key templates: those in force, and retired ones."""
    boards, retired = tables.boards, tables.retired_definitions
    in_force = select(*_BOARD).where(boards.c.definition.has_key("keys"), ~_named(project, board))
    is_other = ~and_(retired.c.project == project, retired.c.board == board)
    leaving = select(*_RETIRED).where(retired.c.definition.has_key("keys"), is_other)
    return (
        [_stored(row) for row in (await connection.execute(in_force)).mappings()],
        [_stored_as_retired(row) for row in (await connection.execute(leaving)).mappings()],
    )


async def _retire(connection: AsyncConnection, stored: StoredBoard, *, whole: bool) -> None:
    values = {
        "number": tables.board_version.next_value(),
        "project": stored.project,
        "board": stored.board,
        "id": stored.id,
        "version": stored.version,
        "definition": _stored_definition(stored.definition),
        "whole": whole,
    }
    await connection.execute(insert(tables.retired_definitions).values(values))


async def _release(connection: AsyncConnection, held: RetiredDefinition) -> None:
    retired = tables.retired_definitions
    released = await connection.execute(delete(retired).where(retired.c.number == held.number))
    if not released.rowcount:
        raise HoldLost(f"{held.board.project}/{held.board.board} was changed by another request; try again")


async def _retired(connection: AsyncConnection, project: str, board: str) -> list[RetiredDefinition]:
    retired = tables.retired_definitions
    chosen = select(*_RETIRED).where(retired.c.project == project, retired.c.board == board)
    rows = (await connection.execute(chosen.order_by(retired.c.number))).mappings()
    return [_record(row) for row in rows]


def _record(row: RowMapping) -> RetiredDefinition:
    return RetiredDefinition(row["number"], _stored_as_retired(row), row["whole"])


def _stored_as_retired(row: RowMapping) -> StoredBoard:
    fields = {name: row[name] for name in ("project", "board", "id", "version", "definition")}
    return _stored({**fields, "created_at": row["retired_at"], "updated_at": row["retired_at"]})


async def _insert(
    connection: AsyncConnection, project: str, board: str, definition: BoardDefinition, owner: Owner | None
) -> StoredBoard:
    first = await connection.execute(select(tables.board_version.next_value()))
    number = first.scalar_one()
    values = {
        "id": number,
        "project": project,
        "board": board,
        "definition": _stored_definition(definition),
        "version": number,
        "owner": owner,
    }
    inserted = await connection.execute(insert(tables.boards).values(values).returning(*_BOARD))
    return _stored(inserted.mappings().one())


async def _insert_all(
    connection: AsyncConnection, definitions: Mapping[BoardRef, BoardDefinition]
) -> list[StoredBoard]:
    """Equal definitions are written as text once."""
    named = _names_of(definitions, _texts_of(definitions.values()))
    numbered = select(
        named.c.project,
        named.c.board,
        cast(named.c.definition, JSONB).label("definition"),
        tables.board_version.next_value().label("number"),
    ).subquery()
    number = numbered.c.number
    rows = select(numbered.c.project, numbered.c.board, numbered.c.definition, number, number)
    names = ["project", "board", "definition", "version", "id"]
    inserted = insert(tables.boards).from_select(names, rows).returning(*_BOARD)
    return [replace(_stored(row), created=True) for row in (await connection.execute(inserted)).mappings()]


async def _update_all(
    connection: AsyncConnection, definitions: Mapping[BoardRef, BoardDefinition]
) -> list[tuple[RetiredDefinition, StoredBoard]]:
    boards, retired = tables.boards, tables.retired_definitions
    named = _names_of(definitions, _texts_of(definitions.values()))
    is_named = _named(named.c.project, named.c.board)
    columns = ("project", "board", "id", "version", "definition")
    old = select(tables.board_version.next_value(), false(), *boards.c[*columns]).join(named, is_named)
    left = insert(retired).from_select(["number", "whole", *columns], old).returning(*_RETIRED)
    records = {row["id"]: _record(row) for row in (await connection.execute(left)).mappings()}
    definition, version = cast(named.c.definition, JSONB), tables.board_version.next_value()
    changed = update(boards).values(definition=definition, version=version, updated_at=func.now())
    rows = (await connection.execute(changed.where(is_named).returning(*_BOARD))).mappings()
    return [(records[row["id"]], _stored(row)) for row in rows]


def _texts_of(definitions: Collection[BoardDefinition]) -> list[str]:
    different = {id(each): each for each in definitions}
    texts = {key: _encode(_stored_definition(each)).decode() for key, each in different.items()}
    return [texts[id(each)] for each in definitions]


async def _update(
    connection: AsyncConnection, project: str, board: str, definition: BoardDefinition, owner: Owner | None
) -> StoredBoard:
    values = {
        "definition": _stored_definition(definition),
        "version": tables.board_version.next_value(),
        "updated_at": func.now(),
        "owner": owner,
    }
    changed = update(tables.boards).where(_named(project, board)).values(values).returning(*_BOARD)
    return _stored((await connection.execute(changed)).mappings().one())


def _stored_definition(definition: BoardDefinition) -> dict[str, Any]:
    # Without defaults. A version that adds a field can read old rows, and the version before it can read new
    # rows that do not use the field. So both can serve side by side during an upgrade.
    return definition.model_dump(mode="json", exclude_defaults=True)


def _stored(row: RowMapping | dict[str, Any]) -> StoredBoard:
    try:
        definition = _read_definition(row["definition"])
    except ValidationError as error:
        wrong = next(field_errors(error))
        raise LaurelsError(
            f"the stored definition of {row['project']}/{row['board']} cannot be read; "
            f"was it stored by a newer Laurels? {wrong.field}: {wrong.detail}"
        ) from error
    fields: dict[str, Any] = {**row, "definition": definition}
    return StoredBoard(**fields)


@lru_cache(maxsize=DEFINITIONS)
def _read_definition(text: str) -> BoardDefinition:
    return BoardDefinition.model_validate(msgspec.json.decode(text))
