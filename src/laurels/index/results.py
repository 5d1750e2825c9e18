"""What a ranking answers. msgspec, Pydantic and FastAPI serialise it.

`response_model=list[Ranked[GameScore]]` works for a SQLModel; a model of SQLAlchemy alone needs a Pydantic
model of what to show, with `from_attributes`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime  # noqa: TC003  # msgspec reads the annotations
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, get_args

import msgspec

if TYPE_CHECKING:
    from datetime import timedelta

Model = TypeVar("Model")


class _Result(msgspec.Struct, frozen=True):
    """Describes its subclasses to Pydantic, field by field."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Callable[[Any], Any]) -> Any:  # noqa: ANN401  # Pydantic's own types
        from pydantic_core import core_schema  # noqa: PLC0415  # only for those who use Pydantic

        given = dict(zip(getattr(cls, "__parameters__", ()), get_args(source), strict=False))
        fields = {
            field.name: core_schema.typed_dict_field(handler(given.get(field.type, field.type)))
            for field in msgspec.structs.fields(cls)
        }
        as_fields = core_schema.typed_dict_schema(fields, cls_name=cls.__name__)

        def written(value: Any, write: Callable[[Any], Any]) -> Any:  # noqa: ANN401  # as above
            return write(msgspec.structs.asdict(value) if isinstance(value, cls) else value)

        return core_schema.no_info_after_validator_function(
            lambda values: cls(**values),
            core_schema.no_info_before_validator_function(_fields_of, as_fields),
            serialization=core_schema.wrap_serializer_function_ser_schema(written, schema=as_fields),
        )


def _fields_of(value: object) -> object:
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.asdict(value)
    return dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else value


class Ranked(_Result, Generic[Model], frozen=True):
    """A record with its score and its rank. In an index of members, the record is the one that makes the
    entry.
    """

    item: Model
    score: int
    rank: int


class Placing(_Result, frozen=True, gc=False):
    """An entry without its record. `key` is the primary key, a tuple for several columns; in an index of
    members, it is the member.
    """

    key: Any
    score: int
    rank: int


class RankedPage(_Result, Generic[Model], frozen=True):
    """Consecutive entries, with cursors to the next and the previous page."""

    entries: list[Ranked[Model]]
    total: int
    next: str | None
    previous: str | None


class Window(_Result, frozen=True):
    """A window that can be asked for: from `starts_at` up to `ends_at`; None: it has no such end."""

    id: int | str
    """floor(unix time / length) of a fixed window; the text of a calendar window: `2025-w43`."""
    starts_at: datetime | None
    ends_at: datetime | None
    entries: int
    period: str


@dataclass(frozen=True)
class IndexStatus:
    """How an index is."""

    index: str
    is_installed: bool
    """Whether its table has the triggers of the declaration."""
    is_built: bool
    """Whether it is complete, as it is declared now."""
    is_maintained: bool
    """Whether any process applies commits to it."""
    waiting: int
    """Committed changes that are not applied yet."""
    lag: timedelta
    """How long the oldest of them has waited."""

    @property
    def is_ready(self) -> bool:
        """Whether its answers are complete, but for what was committed a moment ago."""
        is_whole = self.is_installed and self.is_built
        return is_whole and (self.is_maintained or not self.waiting)
