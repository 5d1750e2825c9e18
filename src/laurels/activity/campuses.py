"""Which campus each user belongs to: as Valkey remembers it, and else as PostgreSQL knows it.

`user:campus:USER` is the backend's to set when a profile changes. What is not there is asked of PostgreSQL,
and remembered for an hour. A campus that PostgreSQL does not have is none: its zone is not known.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from laurels.activity.valkey_keys import shard_of
from laurels.errors import LaurelsError
from laurels.logs import get_logger
from laurels.valkey import strings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from laurels.activity.store.people import Campus, CampusStore
    from laurels.activity.valkey_keys import ActivityKeys
    from laurels.valkey.client import Valkey

# How long what PostgreSQL said of a user is remembered in Valkey.
USER_SECONDS: Final = 3600
# How long what it said of the campuses is remembered here.
CAMPUS_SECONDS: Final = 60.0
KEYS_TOGETHER: Final = 1000

log = get_logger("laurels.activity")


class UserCampuses:
    def __init__(self, valkey: Valkey, store: CampusStore, keys: ActivityKeys) -> None:
        self._valkey = valkey
        self._store = store
        self._keys = keys
        self._known: dict[str, Campus] = {}
        self._asked = float("-inf")

    async def of(self, users: Collection[str]) -> dict[str, Campus]:
        """The campus of each of these users; those of whom it is not known are left out."""
        if not users:
            return {}
        remembered = await self._remembered(users)
        await self._refresh(set(remembered.values()))
        found = {user: self._known[id_] for user, id_ in remembered.items() if id_ in self._known}
        missing = [user for user in users if user not in remembered]
        if missing:
            asked = await self._store.campuses_of(missing)
            await self._remember(asked)
            found |= asked
        return found

    async def _remembered(self, users: Iterable[str]) -> dict[str, str]:
        """Ids of campuses, as they stand in Valkey."""
        groups: dict[int, list[str]] = {}
        for user in users:
            groups.setdefault(shard_of(user) if self._valkey.is_cluster else 0, []).append(user)
        chunks = [
            group[first : first + KEYS_TOGETHER]
            for group in groups.values()
            for first in range(0, len(group), KEYS_TOGETHER)
        ]
        answers = await self._valkey.run_all(
            strings.get_texts([*map(self._keys.campus_of, chunk)]) for chunk in chunks
        )
        return {
            user: campus.lower()
            for chunk, answer in zip(chunks, answers, strict=True)
            for user, campus in zip(chunk, answer, strict=True)
            if campus
        }

    async def _remember(self, campuses: dict[str, Campus]) -> None:
        """But never over what the backend set meanwhile."""
        await self._valkey.run_all(
            strings.put(self._keys.campus_of(user), campus.id, seconds=USER_SECONDS, if_absent=True)
            for user, campus in campuses.items()
        )

    async def _refresh(self, wanted: set[str]) -> None:
        """Asks for the campuses when one is unknown, or it is long ago; while PostgreSQL is away, the known
        ones serve.
        """
        now = time.monotonic()
        if not wanted or (wanted <= self._known.keys() and now - self._asked < CAMPUS_SECONDS):
            return
        try:
            self._known = {campus.id: campus for campus in await self._store.campuses()}
            self._asked = now
        except LaurelsError as error:
            if not wanted <= self._known.keys():
                raise
            log.warning("campuses are not refreshed", detail=error.detail)
