"""Who sends a request, and what their credentials allow.

An API key belongs to one project, or to all of them (`*`). The scope `read` allows reading, `submit` allows
submitting scores, and `admin` allows both and everything else: defining and dropping boards, removing
members, making and revoking keys. A player's token belongs to one project. It allows reading, and submitting
the player's own scores to boards that accept players.

A principal without access to a project gets the same error whether or not that project exists.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from laurels.access.store.api_keys import EVERY_PROJECT, SCOPES
from laurels.errors import Forbidden

if TYPE_CHECKING:
    from laurels.access.players import Player
    from laurels.access.store.api_keys import Scope


@dataclass(frozen=True, slots=True)
class Principal:
    """Who sends a request: the holder of an API key, or a player."""

    project: str
    scopes: frozenset[Scope]
    name: str = ""
    """Which key it is, or which player: for limits."""
    player: Player | None = None

    def may_see(self, project: str) -> bool:
        return self.project in (project, EVERY_PROJECT)

    def check(self, project: str, scope: Scope, *, takes_players: bool = False) -> None:
        if not self.may_see(project):
            what = "token" if self.player else "key"
            raise Forbidden(f"this {what} is for the project {self.project}, not for {project}")
        if not (self.player and takes_players):
            self.check_scope(scope)

    def check_scope(self, scope: Scope) -> None:
        if scope not in self.scopes and "admin" not in self.scopes:
            if self.player:
                raise Forbidden(f"this needs a key with the scope {scope}, not a player's token")
            has = ", ".join(each for each in SCOPES if each in self.scopes)
            raise Forbidden(f"this needs a key with the scope {scope}; this one has {has}")


BOOTSTRAPPER: Final = Principal(EVERY_PROJECT, frozenset(SCOPES), "bootstrap")
