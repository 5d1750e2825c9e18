"""After migrations: removes what indexes without a table, or without triggers, have left."""

from __future__ import annotations

from typing import Final

from django.db import connections, transaction

from laurels.index.installed import INSTALLED, read_installed
from laurels.index.triggers import SCHEMA, removal_of

_KNOWN: Final = f"SELECT index FROM {SCHEMA}.indexes"  # noqa: S608  # our own name


def remove_orphans(using: str, **_: object) -> None:
    """A deleted model takes its triggers along, and a changed index is removed and added again. So this runs
    when all migrations are through: what no trigger belongs to then has no use.
    """
    connection = connections[using]
    if connection.vendor != "postgresql":
        return
    with transaction.atomic(using), connection.cursor() as cursor:
        cursor.execute(f"SELECT to_regclass('{SCHEMA}.indexes') IS NOT NULL")  # as above
        if not cursor.fetchone()[0]:
            return
        cursor.execute(INSTALLED)
        there = read_installed(cursor.fetchall())
        cursor.execute(_KNOWN)
        known = {name for (name,) in cursor.fetchall()} | there.keys()
        for name in known:
            if name not in there or there[name].is_orphan:
                for statement in removal_of(name):
                    cursor.execute(statement)
