"""The declared indexes of models, found by model, name or score.

SQLAlchemy calls us at the end of each mapped class, with any base, so a wrong declaration fails there. A
model that is mapped later, such as a reflected one, is checked then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

from sqlalchemy import MetaData, event, inspect
from sqlalchemy.exc import NoInspectionAvailable
from sqlalchemy.orm import InstrumentedAttribute, Mapper

from laurels.errors import InvalidInput
from laurels.index.checker import check
from laurels.index.declaration import DeclaredIndex, LeaderboardIndex, WindowName, digest, plain_type
from laurels.wording import suggestion

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "DeclaredIndex",
    "LeaderboardIndex",
    "WindowName",
    "declared",
    "declared_as",
    "digest",
    "mapper_of",
    "models_of",
    "plain_type",
]

Model = TypeVar("Model")

_known: dict[type[Any], tuple[DeclaredIndex[Any], ...]] = {}


def declared(model: type[Model]) -> tuple[DeclaredIndex[Model], ...]:
    """The indexes of a model, in order of declaration; raises `InvalidInput` when it has none."""
    found = _known.get(model)
    if not found:
        named = getattr(model, "__name__", repr(model))
        raise InvalidInput.at(
            "model", f"{named} declares no leaderboard; give it `__leaderboards__ = [LeaderboardIndex(…)]`"
        )
    return found


def declared_as(model: type[Model], which: str | InstrumentedAttribute[Any] | None) -> DeclaredIndex[Model]:
    """The index of a model with this name or score; None for its only one."""
    found = declared(model)
    if which is None:
        if len(found) == 1:
            return found[0]
        names = ", ".join(each.label for each in found)
        raise InvalidInput.at("index", f"{model.__name__} has several: name one of {names}")
    if isinstance(which, str):
        fitting = [each for each in found if each.label == which]
    elif isinstance(which, InstrumentedAttribute):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers exist
        fitting = [each for each in found if each.index.score in {which.key, which.name}]
    else:
        raise InvalidInput.at(
            "index",
            f"must be a name or an attribute such as {model.__name__}.{found[0].index.score}, not {which!r}",
        )
    if len(fitting) == 1:
        return fitting[0]
    wanted = which if isinstance(which, str) else which.key
    if fitting:
        names = ", ".join(repr(each.label) for each in fitting)
        raise InvalidInput.at("index", f"{model.__name__} ranks {wanted!r} in several: name one of {names}")
    names = [each.label for each in found]
    raise InvalidInput.at("index", f"{model.__name__} has no index {wanted!r}; {suggestion(wanted, names)}")


def models_of(*sources: object) -> list[type[Any]]:
    """The models with indexes among models, declarative bases, their metadata, and lists of these."""
    found: dict[type[Any], None] = {}
    for source in sources:
        if isinstance(source, type) and hasattr(source, "__mapper__"):
            declared(source)
            found[source] = None
            continue
        metadata = source if isinstance(source, MetaData) else getattr(source, "metadata", None)
        if isinstance(metadata, MetaData):
            found |= dict.fromkeys(
                model for model, own in _known.items() if own and own[0].table.metadata is metadata
            )
        elif isinstance(source, type):
            declared(source)
        else:
            found |= dict.fromkeys(models_of(*cast("Iterable[object]", source)))
    return list(found)


def _check(mapper: Mapper[Any], model: type[Any]) -> None:
    if (indexes := check(model, mapper)) is not None:
        _known[model] = indexes


event.listen(Mapper, "after_mapper_constructed", _check)


def mapper_of(model: type[Model]) -> Mapper[Model]:
    try:
        return cast("Mapper[Model]", inspect(model))
    except NoInspectionAvailable as error:
        raise InvalidInput.at("model", f"{model!r} is not a mapped class") from error
