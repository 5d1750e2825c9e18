"""Finds the campus of each user: in Valkey, or else in PostgreSQL.

The backend sets `user:campus:USER` in Valkey when a profile changes. A campus that is missing there is read
from PostgreSQL and cached in Valkey for an hour. A campus that PostgreSQL does not have becomes a place with
the default timezone.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from laurels.activity.campus_people import campus_id
from laurels.activity.valkey_keys import shard_of
from laurels.errors import LaurelsError
from laurels.logs import get_logger
from laurels.valkey import strings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from laurels.activity.campus_people import CampusPeople
    from laurels.activity.store.people import Campus
    from laurels.activity.valkey_keys import ActivityKeys
    from laurels.valkey.client import Valkey

# How long Valkey caches a user's campus.
USER_SECONDS: Final = 3600
# How long this process caches the campuses.
CAMPUS_SECONDS: Final = 60.0
KEYS_A_COMMAND: Final = 1000

log = get_logger("laurels.activity")


class UserCampuses:
    def __init__(self, valkey: Valkey, store: CampusPeople, keys: ActivityKeys) -> None:
        self._valkey = valkey
        self._store = store
        self._keys = keys
        self._known: dict[str, Campus] = {}
        self._refreshed = float("-inf")

    async def of(self, users: Collection[str]) -> dict[str, Campus]:
        """The campus of each of these users; users without a known campus are left out."""
        if not users:
            return {}
        cached = await self._cached(users)
        await self._refresh(set(cached.values()))
        found = {user: self._known[id_] for user, id_ in cached.items() if id_ in self._known}
        missing = [user for user in users if user not in cached]
        if missing:
            stored = await self._store.campuses_of(missing)
            await self._cache(stored)
            found |= stored
        return found

    async def _cached(self, users: Iterable[str]) -> dict[str, str]:
        """The campus id of each user in Valkey."""
        groups: dict[int, list[str]] = {}
        for user in users:
            groups.setdefault(shard_of(user) if self._valkey.is_cluster else 0, []).append(user)
        chunks = [
            group[first : first + KEYS_A_COMMAND]
            for group in groups.values()
            for first in range(0, len(group), KEYS_A_COMMAND)
        ]
        answers = await self._valkey.run_all(
            strings.get_texts([*map(self._keys.campus_of, chunk)]) for chunk in chunks
        )
        return {
            user: id_
            for chunk, answer in zip(chunks, answers, strict=True)
            for user, campus in zip(chunk, answer, strict=True)
            if campus and (id_ := campus_id(campus))
        }

    async def _cache(self, campuses: dict[str, Campus]) -> None:
        """Never overwrites what the backend has set meanwhile."""
        await self._valkey.run_all(
            strings.put(self._keys.campus_of(user), campus.id, seconds=USER_SECONDS, if_absent=True)
            for user, campus in campuses.items()
        )

    async def _refresh(self, wanted: set[str]) -> None:
        """Reads the campuses again when one is unknown or the cache is old. The cache serves while PostgreSQL
        does not answer.
        """
        now = time.monotonic()
        if not wanted or (wanted <= self._known.keys() and now - self._refreshed < CAMPUS_SECONDS):
            return
        try:
            self._known = await self._store.known(wanted)
            self._refreshed = now
        except LaurelsError as error:
            if not wanted <= self._known.keys():
                raise
            log.warning("campuses not read from PostgreSQL; using the cached ones", detail=error.detail)
