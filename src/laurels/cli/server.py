"""Starts the stores and the API, and runs until a signal stops it."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import signal
import sys
import threading
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import uvicorn

from laurels import demo as demo_project
from laurels import embedded
from laurels.access.store.api_keys import EVERY_PROJECT, SCOPES
from laurels.cli import campus_demo, local_key, open_files
from laurels.cli.background import Background
from laurels.cli.listening import Listener
from laurels.cli.welcome import OWN_BOARD, Announcement, Welcome
from laurels.engine import Laurels
from laurels.errors import StartupError
from laurels.logs import configure_logs, get_logger
from laurels.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from pathlib import Path
    from types import FrameType

    from fastapi import FastAPI

    from laurels.cli.output import Output
    from laurels.settings import Settings

APP = "laurels.cli.server:worker_app"
UVICORN: dict[str, Any] = {
    "factory": True,
    "ws": "none",  # ignores requests to upgrade
    "http": "laurels.http.server.fast_protocol:FastProtocol",  # httptools
    "log_config": None,
    "access_log": False,  # the API has its own
    "server_header": False,
    "proxy_headers": False,  # the API reads them itself, from trusted proxies
    "timeout_graceful_shutdown": 10,  # seconds for the current requests to end
}


class Terminated(BaseException):
    """SIGTERM arrived: stop in good order."""


@dataclass(frozen=True)
class Stores:
    valkey_url: str
    postgres_url: str
    data_dir: Path | None
    """The data folder if both stores are embedded."""


@dataclass(frozen=True)
class Demos:
    """Which invented data to fill in."""

    arcade: bool
    campuses: bool


def run(given: Mapping[str, object], demos: Demos, output: Output, *, jobs: bool) -> None:
    """`given`: the settings that are options. `jobs`: whether to do the background work too."""
    settings = load_settings(**given)
    _set_up_logs(settings)
    signal.signal(signal.SIGTERM, _terminate)
    try:
        with Listener(settings.host, settings.port) as listener, _stores(settings, output) as stores:
            os.environ |= {
                "LAURELS_VALKEY_URL": stores.valkey_url,
                "LAURELS_POSTGRES_URL": stores.postgres_url,
            }
            welcome = asyncio.run(_prepare(settings, stores, listener, output, demos))
            announcement = Announcement(welcome, output)
            with Background() if jobs else nullcontext():
                _answer_requests(settings, listener)
            if not announcement.was_made:
                raise StartupError("the API did not start: see the log above")
    except Terminated:
        return


def worker_app() -> FastAPI:
    """The app of each HTTP process. Its settings come from the environment."""
    from laurels.http.app import app_from_settings  # noqa: PLC0415  # half a second, which the parent of several processes saves

    _set_up_logs(load_settings())
    _end_with_parent()
    return app_from_settings()


@contextmanager
def _stores(settings: Settings, output: Output) -> Generator[Stores]:
    external = embedded.ExternalServers(settings.valkey_url, settings.postgres_url)
    if external.endpoints:
        yield Stores(external.endpoints.valkey_url, external.endpoints.postgres_url, None)
        return
    with output.working("Starting the stores") as say:
        folder = settings.data_dir or embedded.default_data_dir()
        # Without a terminal, the log shows the progress.
        log = say if output.is_watched else get_logger("laurels.serve").info
        servers = embedded.start(folder, external=external, say=log)
    with servers:
        ours = servers.endpoints
        both = not settings.valkey_url and not settings.postgres_url
        yield Stores(ours.valkey_url, ours.postgres_url, servers.data_dir if both else None)


async def _prepare(
    settings: Settings, stores: Stores, listener: Listener, output: Output, demos: Demos
) -> Welcome:
    """Does what must happen once, before the HTTP processes start."""
    async with Laurels(valkey_url=stores.valkey_url, postgres_url=stores.postgres_url) as laurels:
        if demos.arcade:
            with output.counting("Filling the demo board") as progress:
                await demo_project.fill(laurels, progress=progress)
        if demos.campuses:
            with output.counting("Inventing campuses") as progress:
                await campus_demo.fill(laurels, progress)
        address = listener.address
        has_demo = await laurels.store.get(*demo_project.BOARD.split("/")) is not None
        return Welcome(
            url=address.url,
            board=demo_project.BOARD if has_demo else OWN_BOARD,
            is_defined=has_demo,
            key=await _settle_local_key(laurels, stores.data_dir if address.is_loopback else None),
            key_file=stores.data_dir and stores.data_dir / local_key.FILE,
            key_variable="LAURELS_BOOTSTRAP_KEY" if settings.bootstrap_key else "KEY",
            token=await campus_demo.token(laurels) if demos.campuses and address.is_loopback else None,
        )


async def _settle_local_key(laurels: Laurels, data_dir: Path | None) -> str | None:
    if data_dir is None:
        await laurels.keys.revoke(local_key.LABEL)
        return None
    secret = local_key.local_key(data_dir)
    await laurels.keys.ensure(secret, EVERY_PROJECT, SCOPES, local_key.LABEL)
    return secret


def _answer_requests(settings: Settings, listener: Listener) -> None:
    """Serves until SIGINT, which raises KeyboardInterrupt, or SIGTERM, which raises Terminated or returns."""
    options: dict[str, Any] = UVICORN | {
        "timeout_keep_alive": settings.keep_alive,
        "limit_concurrency": open_files.connections_within(settings.max_connections),
    }
    if settings.workers == 1:
        uvicorn.Server(uvicorn.Config(APP, **options)).run(sockets=[listener.socket])
        return
    listener.socket.close()  # uvicorn binds for its workers itself
    host, port = listener.address.host, listener.address.port
    with _remembering_interrupts():
        uvicorn.run(APP, host=host, port=port, workers=settings.workers, **options)


@contextmanager
def _remembering_interrupts() -> Generator[None]:
    """Raises KeyboardInterrupt after a Ctrl-C, which uvicorn's supervisor of workers handles silently."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing)
    try:
        yield
    finally:
        signal.set_wakeup_fd(-1)
        os.close(writing)
        with os.fdopen(reading, "rb") as arrived:
            signals = arrived.read() or b""
    if signal.SIGINT in signals:
        raise KeyboardInterrupt


def _end_with_parent() -> None:
    """Stops a worker process whose parent was killed, to free the port."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="parent", daemon=True).start()


def _set_up_logs(settings: Settings) -> None:
    """Libraries log only warnings and errors, and so do requests in a terminal, unless a level is set."""
    configure_logs(settings)
    quiet = ["alembic", "uvicorn"] if settings.log_level != "debug" else []
    if sys.stderr.isatty() and "log_level" not in settings.model_fields_set:
        quiet.append("laurels.access")
    for name in quiet:
        logging.getLogger(name).setLevel(logging.WARNING)


def _terminate(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise Terminated
