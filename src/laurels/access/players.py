"""Players: they send a token that their project signed, and submit for themselves only.

A token is a JWT. The project's secrets verify it, each with its own algorithm; the token's `alg` decides
nothing. A `kid` only says which of the secrets to use.
"""

from __future__ import annotations

import base64
import json
import math
import re
from dataclasses import dataclass, field
from datetime import datetime  # noqa: TC003  # msgspec reads it at run time
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, cast

import jwt
import msgspec
from jwt.exceptions import InvalidJTIError, InvalidSubjectError

from laurels.boards.names import NAME_PATTERN
from laurels.errors import Forbidden, InvalidInput, Unauthorized
from laurels.scores.submission import AdmittedSubmission, check_member

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laurels.access.store.secrets import ActiveSecret
    from laurels.moments import Moment

LONGEST_TOKEN: Final = 8192
# How far the clock of the token's issuer may differ from ours.
LEEWAY_SECONDS: Final = 10
# The end of the year 9999, in Unix seconds.
LAST_SECOND: Final = 253_402_300_799

_TOKEN: Final = re.compile(r"eyJ[\w-]*\.[\w-]+\.[\w-]*", re.ASCII)
_PROJECT: Final = re.compile(NAME_PATTERN)
# Times are checked here, by the engine's clock.
_OPTIONS: Final[Any] = {
    "require": ["exp", "aud", "sub", "project"],
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
}


@dataclass(frozen=True, slots=True)
class Player:
    member: str
    groups: dict[str, str] = field(default_factory=dict[str, str])

    def own_id(self, given: str) -> str:
        """A submission's id within the player's own namespace, so that no player can use up another's ids.

        Generated ids too: other players in the same batch see them.
        """
        return f"{sha256(self.member.encode()).hexdigest()[:32]}:{given}"

    def submission(self, given: PlayerSubmission) -> AdmittedSubmission:
        """The player's own submission; raises `Forbidden` for another member or another group."""
        if given.member not in (None, self.member):
            raise Forbidden("member: is not the player of this token; players submit for themselves only")
        groups = given.groups or {}
        for name, value in self.groups.items():
            if groups.get(name, value) != value:
                raise Forbidden(f"groups.{name}: is not what the token says; leave it out")
        return AdmittedSubmission(
            self.member,
            given.score,
            at=given.at,
            groups=given.groups,
            id=given.id,
            op=given.op,
            metadata=given.metadata,
            own_groups=self.groups,
        )


class PlayerSubmission(msgspec.Struct, forbid_unknown_fields=True):
    """A submission with a player's token, which may leave the member out."""

    score: int | float | str
    member: str | None = None
    at: datetime | None = None
    groups: dict[str, str] | None = None
    id: str | None = None
    op: str | None = None
    metadata: dict[str, Any] | None = None


def is_token(secret: str) -> bool:
    """Whether the secret looks like a JWT; API keys never do."""
    return secret.startswith("eyJ") and _TOKEN.fullmatch(secret) is not None


def project_of(token: str) -> str:
    """The project that the token claims, not verified yet."""
    if len(token) > LONGEST_TOKEN:
        raise Unauthorized(f"a token has at most {LONGEST_TOKEN} characters")
    try:
        _check_names(token)
        claims = jwt.decode(token, options={"verify_signature": False})
    except (jwt.PyJWTError, ValueError, RecursionError) as error:
        raise Unauthorized("the token is not a JWT") from error
    project: object = claims.get("project")
    if not isinstance(project, str) or not _PROJECT.fullmatch(project):
        raise Unauthorized("the token names no project: it needs the claim `project`")
    return project


def _check_names(token: str) -> None:
    """Refuses duplicate claims: Python reads the last one, but another program may read the first."""
    for part in token.split(".")[:2]:
        decoded = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
        json.loads(decoded.decode(), object_pairs_hook=_unique)


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    names = dict(pairs)
    if len(names) < len(pairs):
        raise Unauthorized("the token repeats a claim or a field of its header")
    return names


@dataclass(frozen=True, slots=True)
class VerifiedToken:
    """The player of a token with a good signature, and the seconds between which the token is valid."""

    player: Player
    not_before: float
    expires: float

    def is_valid_at(self, now: Moment) -> bool:
        seconds = now / 1_000_000
        return self.not_before - LEEWAY_SECONDS <= seconds < self.expires + LEEWAY_SECONDS

    def check(self, now: Moment) -> None:
        """Raises `Unauthorized` outside the token's time."""
        if self.is_valid_at(now):
            return
        if self.not_before - LEEWAY_SECONDS > now / 1_000_000:
            raise Unauthorized("the token is not valid yet: its `nbf` is in the future")
        raise Unauthorized("the token has expired: its `exp` is in the past")


def verified(token: str, secrets: Sequence[ActiveSecret], audience: str) -> VerifiedToken:
    """Raises `Unauthorized` with the reason for a token that these secrets did not sign."""
    claims = _claims(token, [secret for secret in secrets if secret.use == "players"], audience)
    moments = {name: _moment(claims, name) for name in ("exp", "nbf", "iat") if name in claims}
    try:
        check_member(claims["sub"])
    except InvalidInput as error:
        raise Unauthorized(f"the token's `sub` is not a member: {error.fields[0].detail}") from error
    player = Player(claims["sub"], _groups(claims))
    return VerifiedToken(player, moments.get("nbf", -math.inf), moments["exp"])


def _claims(token: str, secrets: Sequence[ActiveSecret], audience: str) -> dict[str, Any]:
    kid: object = jwt.get_unverified_header(token).get("kid")
    reason = "it is not signed with a secret of its project that is in force"
    for secret in secrets:
        if kid is not None and kid != secret.id:
            continue
        try:
            return jwt.decode(
                token, secret.key, algorithms=[secret.algorithm], audience=audience, options=_OPTIONS
            )
        except jwt.InvalidAudienceError:
            reason = f"its `aud` is not {audience}"
        except jwt.MissingRequiredClaimError as error:
            reason = f"it needs the claim `{error.claim}`"
        except InvalidSubjectError:
            reason = "its `sub` must be a string"
        except InvalidJTIError:
            reason = "its `jti` must be a string"
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
            continue
    raise Unauthorized(f"the token is not valid: {reason}")


def signed(claims: dict[str, Any], secret: str) -> str:
    """A token as a project signs it with its HS256 secret."""
    return jwt.encode(claims, secret, algorithm="HS256")


def _moment(claims: dict[str, Any], name: str) -> float:
    value: object = claims[name]
    # Python reads NaN and Infinity, which JSON does not have: such a token would never expire. The bound also
    # refuses milliseconds, which lie beyond the year 10000.
    if not isinstance(value, bool) and isinstance(value, int | float) and 0 <= value <= LAST_SECOND:
        return value
    raise Unauthorized(
        f"the token's `{name}` must be a number: the time in unix seconds, before the year 10000"
    )


def _groups(claims: dict[str, Any]) -> dict[str, str]:
    groups: object = claims.get("groups", {})
    if isinstance(groups, dict):
        named = cast("dict[str, object]", groups)
        texts = {name: value for name, value in named.items() if isinstance(value, str)}
        if len(texts) == len(named):
            return texts
    raise Unauthorized("the token's `groups` must be an object of strings")
