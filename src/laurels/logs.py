"""One pipeline for all log lines: those of Laurels, uvicorn, Alembic and SQLAlchemy.

As a library Laurels prints nothing: it logs to the standard library's loggers below `laurels`, which an
application may configure. Commands and the service configure them here: lines go to stderr, coloured in a
terminal and JSON elsewhere, with UTC times. Each line of a request has its id, and what else
`structlog.contextvars` binds. Masking comes last, on the finished line, so that no message, value or
traceback reveals a secret.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import structlog

from laurels.masking import MASK, masked

if TYPE_CHECKING:
    from structlog.typing import EventDict, Processor, WrappedLogger

    from laurels.settings import Settings

REQUEST: ContextVar[str | None] = ContextVar("request", default=None)
"""The id of the current request."""

SECRET_NAMES = frozenset(
    {"api_key", "authorization", "bootstrap_key", "cookie", "password", "secret", "token"}
)

# These libraries install handlers of their own; here their records go to the root logger instead.
_FOREIGN_LOGGERS = ("uvicorn", "uvicorn.error", "uvicorn.access", "alembic", "sqlalchemy", "py.warnings")

# A shorter bootstrap key would also match inside ordinary words.
_SHORTEST_KNOWN_SECRET = 8

# Without this, Python would print a library's warnings to stderr.
logging.getLogger("laurels").addHandler(logging.NullHandler())


def get_logger(name: str) -> Any:  # noqa: ANN401  # structlog's own type
    """A structlog logger over the standard library's logger of that name, which must be below `laurels`."""
    return structlog.wrap_logger(logging.getLogger(name))


def configure_logs(settings: Settings) -> None:
    """Sets up logging for the process; the last call wins."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        add_request,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
        _hide_named_secrets,
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *_renderers(settings),
                _Masking(settings),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.log_level.upper())
    logging.captureWarnings(True)
    for name in _FOREIGN_LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
    # Alembic logs every check of the schema at info, even when there is nothing to do.
    logging.getLogger("alembic").setLevel(max(logging.WARNING, root.level))


def _renderers(settings: Settings) -> list[Processor]:
    in_terminal = sys.stderr.isatty()
    if settings.log_format == "console" or (settings.log_format == "auto" and in_terminal):
        return [
            structlog.dev.ConsoleRenderer(
                colors=in_terminal and "NO_COLOR" not in os.environ,
                # Rich's formatter would show local variables, which hold keys and passwords.
                exception_formatter=structlog.dev.plain_traceback,
            )
        ]
    return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(default=str)]


def add_request(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    if (request := REQUEST.get()) is not None:
        event.setdefault("request_id", request)
    return event


def _hide_named_secrets(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    for name in event.keys() & SECRET_NAMES:
        event[name] = MASK
    return event


class _Masking:
    """The last processor: masks secrets in the finished line."""

    def __init__(self, settings: Settings) -> None:
        key = settings.bootstrap_key.get_secret_value() if settings.bootstrap_key else ""
        forms = {key, json.dumps(key)[1:-1], repr(key)[1:-1]}
        self._known = tuple(form for form in forms if len(form) >= _SHORTEST_KNOWN_SECRET)

    def __call__(self, _logger: WrappedLogger, _method: str, line: EventDict | str) -> str:
        text = str(line)
        for secret in self._known:
            text = text.replace(secret, MASK)
        return masked(text)
