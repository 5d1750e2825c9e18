"""Reads which durability a request asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from laurels.errors import InvalidInput
from laurels.valkey.messages import DURABILITIES
from laurels.wording import one_of

if TYPE_CHECKING:
    from starlette.requests import Request

    from laurels.valkey.messages import Durability

HEADER: Final = "Laurels-Durability"
DOCUMENTED: Final = {
    HEADER: "What the answer waits for: `fast` nothing, `fsync` the disk, `replicated` replicas too. "
    "Default: the setting of the deployment."
}


def durability_of(request: Request) -> Durability | None:
    """The requested durability; None for the deployment's setting."""
    given = request.headers.get(HEADER)
    if given is None:
        return None
    for known in DURABILITIES:
        if given == known:
            return known
    raise InvalidInput.at(HEADER, one_of(DURABILITIES, given))
