"""The operations of `Laurels` on definitions: define, preview and list boards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from laurels.boards.consent import parse_consent
from laurels.boards.definition import BoardDefinition, parse_definition
from laurels.boards.keys import BoardRef
from laurels.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from laurels.boards.define import Definer
    from laurels.boards.define_many import BulkDefiner
    from laurels.boards.defined import Defined
    from laurels.boards.definition import StoredBoard
    from laurels.boards.preview import Preview
    from laurels.boards.rating import Rating
    from laurels.boards.store import BoardStore
    from laurels.clock import Clock


LONGEST_LIST: Final = 1000


class DefinitionOperations:
    """The operations on definitions."""

    definer: Definer
    bulk_definer: BulkDefiner
    store: BoardStore
    clock: Clock
    check_available: Callable[[Rating | None], None]

    async def define(
        self,
        board: str,
        definition: BoardDefinition | Mapping[str, Any] | None = None,
        *,
        allow_drop: str | Iterable[str] = (),
        only_new: bool = False,
    ) -> StoredBoard:
        """Creates the board or, unless `only_new`, changes it; a mapping is the JSON of the API. `allow_drop`
        names the windows that may lose entries (`"weekly,monthly"`); raises `DropNotAllowed` if others would.
        """
        ref = BoardRef.parse(board)
        return await self.definer.define(
            ref, self._parse(definition or {}), only_new=only_new, allow_drop=parse_consent(allow_drop)
        )

    async def define_many(
        self,
        project: str,
        boards: Mapping[str, BoardDefinition | Mapping[str, Any]],
        *,
        allow_drop: Mapping[str, str | Iterable[str]] | None = None,
    ) -> list[Defined]:
        """Defines boards of a project, by name. A refused one stops no other: the results, in the same order,
        say what became of each. `allow_drop`: for each board, the windows that may lose entries.
        """
        parsed: dict[int, BoardDefinition | InvalidInput] = {}
        for given in boards.values():  # many boards may share one mapping
            if id(given) not in parsed:
                try:
                    parsed[id(given)] = self._parse(given)
                except InvalidInput as error:
                    parsed[id(given)] = error
        consents = {name: parse_consent(names) for name, names in (allow_drop or {}).items()}
        definitions = {name: parsed[id(given)] for name, given in boards.items()}
        return await self.bulk_definer.define(project, definitions, consents)

    async def preview(self, board: str, definition: BoardDefinition | Mapping[str, Any]) -> Preview:
        """What `define` would change, and the windows and keys that it would make. Changes nothing."""
        return await self.definer.preview(BoardRef.parse(board), self._parse(definition), self.clock())

    async def projects(self, *, limit: int | None = None, cursor: str | None = None) -> list[str]:
        """The projects that have boards, sorted by name. With a `limit`, so many: `cursor` is the last name
        of the list before.
        """
        check_limit(limit)
        return await self.store.projects(limit, cursor or "")

    async def boards(
        self, project: str, *, limit: int | None = None, cursor: str | None = None
    ) -> list[StoredBoard]:
        """The boards of a project, sorted by name. With a `limit`, so many: `cursor` is the name of the last
        board of the list before.
        """
        check_limit(limit)
        return await self.store.boards(project, limit, cursor or "")

    def _parse(self, given: BoardDefinition | Mapping[str, Any]) -> BoardDefinition:
        """The definition; raises `InvalidInput`, also if it needs a package that is not installed."""
        definition = given if isinstance(given, BoardDefinition) else parse_definition(dict(given))
        self.check_available(definition.rating)
        return definition


def check_limit(limit: int | None) -> None:
    if limit is not None and not 1 <= limit <= LONGEST_LIST:
        raise InvalidInput.at("limit", f"must be from 1 to {LONGEST_LIST}, not {limit}")
