"""The names and avatars that pages show, cached in the process.

Every change of people writes a new token of their project to Valkey, and a reader that finds another token
than its own reads them again. So no process shows what was changed before the question, and a reader asks
PostgreSQL once for all members of a page that it does not know.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from laurels.scores.results import ShownPerson
from laurels.valkey import strings
from laurels.valkey.names import PEOPLE

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from laurels.people.records import Person
    from laurels.valkey.client import Valkey

# The longest that a cached person is used: a process may die between a change and its announcement.
KEPT_SECONDS: Final = 60.0
# Longer than anything is cached: then no reader has the token before it.
TOKEN_SECONDS: Final = 300
# Members of all projects, those without a person included: some 20 MB.
MOST_KEPT: Final = 100_000


@dataclass(slots=True)
class _Known:
    token: bytes | None
    until: float
    people: dict[str, ShownPerson | None] = field(default_factory=dict[str, ShownPerson | None])


class PersonSource(Protocol):
    """Knows people."""

    async def get_many(self, project: str, ids: Collection[str]) -> Mapping[str, Person]:
        """Those of these that exist."""
        ...


class KnownPeople:
    def __init__(self, valkey: Valkey, store: PersonSource) -> None:
        self.sources: dict[str, PersonSource] = {}
        """Of projects whose people are also known elsewhere."""
        self._valkey = valkey
        self._store = store
        self._projects: dict[str, _Known] = {}
        self._kept = 0

    async def shown(self, project: str, members: Collection[str]) -> dict[str, ShownPerson]:
        """What to show for those of these members who have a name or an avatar."""
        known = await self._known(project)
        missing = [member for member in members if member not in known.people and "\0" not in member]
        if missing:
            stored = await self.sources.get(project, self._store).get_many(project, missing)
            for member in missing:
                person = stored.get(member)
                is_shown = person is not None and (person.name or person.avatar_url)
                known.people[member] = (
                    ShownPerson(person.name, person.avatar_url) if person and is_shown else None
                )
            self._kept += len(missing)
        return {member: person for member in members if (person := known.people.get(member))}

    async def changed(self, project: str) -> None:
        """Has every process read the project's people again. Called after every change."""
        token = secrets.token_urlsafe(9)
        await self._valkey.run(strings.put(f"{PEOPLE}{project}", token, seconds=TOKEN_SECONDS))

    async def _known(self, project: str) -> _Known:
        token = await self._valkey.run(strings.get(f"{PEOPLE}{project}"))
        known, now = self._projects.get(project), time.monotonic()
        if known is not None and known.token == token and now < known.until and self._kept < MOST_KEPT:
            return known
        if self._kept >= MOST_KEPT:
            self._projects.clear()
            self._kept = 0
        elif known is not None:
            self._kept -= len(known.people)
        known = self._projects[project] = _Known(token, now + KEPT_SECONDS)
        return known
