"""The base of declarations: frozen models whose validation errors are in Laurels' own words. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, Self

from pydantic import BaseModel, ConfigDict, ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from laurels.boards.names import PATTERNS
from laurels.wording import of_pydantic

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic_core import ErrorDetails

OURS: Final = "laurels"
"""The type of errors that are in these words already."""


class Declaration(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_timedelta="iso8601")

    tagged: ClassVar[frozenset[str]] = frozenset()
    """Discriminated unions. Pydantic adds the chosen type to the paths of their errors; it is removed."""

    @model_validator(mode="wrap")
    @classmethod
    def _reword(cls, given: object, handler: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return handler(given)
        except ValidationError as error:
            found = error.errors(include_url=False)
            reworded = [cls._reworded(each) for each in found if not _is_echo(each, found)]
            raise ValidationError.from_exception_data(error.title, reworded) from None

    @classmethod
    def _reworded(cls, found: ErrorDetails) -> InitErrorDetails:
        location = found["loc"]
        if found["type"] == OURS:
            words = found["msg"]
            if len(location) > 1 and location[0] in cls.tagged:
                location = (location[0], *location[2:])
        else:
            words = of_pydantic(found, tuple(cls.model_fields), PATTERNS)
        if found["type"].startswith("union_tag"):
            location = (*location, found.get("ctx", {})["discriminator"].strip("'"))
        # A template, because braces in the words would be replaced from the context.
        error = PydanticCustomError(OURS, "{words}", {"words": words})
        return InitErrorDetails(type=error, loc=location, input=found["input"])


def _is_echo(found: ErrorDetails, others: Iterable[ErrorDetails]) -> bool:
    """Whether a list is too short only because its items are invalid."""
    location = found["loc"]
    return found["type"] == "too_short" and any(
        len(each["loc"]) > len(location) and each["loc"][: len(location)] == location for each in others
    )
