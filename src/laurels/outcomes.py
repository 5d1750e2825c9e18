"""What each error of Valkey, Redis, a cluster and PostgreSQL means for the caller. Pure.

- `UNAVAILABLE`: the store refused and did nothing. The caller may send the same call again.
- `UNKNOWN`: the store may or may not have done it. The caller sends a write again with the same id.
- `DEFECT`: Laurels made a mistake. It logs the traceback and answers with 500.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final, NamedTuple


class Outcome(Enum):
    UNAVAILABLE = "unavailable"
    UNKNOWN = "unknown"
    DEFECT = "defect"


class Meaning(NamedTuple):
    outcome: Outcome
    advice: str = ""
    """What an operator can do; "" if only waiting helps."""


def _unavailable(advice: str = "") -> Meaning:
    return Meaning(Outcome.UNAVAILABLE, advice)


_DEFECT = Meaning(Outcome.DEFECT)

# By the first word of the error reply.
VALKEY: Final[dict[str, Meaning]] = {
    # The server cannot serve now.
    "LOADING": _unavailable("it is loading its data: wait until it is done"),
    "BUSY": _unavailable("a script or function runs for too long: stop it with FUNCTION KILL"),
    "UNKILLABLE": _unavailable("a script that has written runs for too long: wait until it ends"),
    "MASTERDOWN": _unavailable("this replica has lost its primary: wait for the failover"),
    "READONLY": _unavailable("this node became a replica: wait for the failover to end"),
    "MISCONF": _unavailable("it cannot write to its disk: free some space there, and look at its log"),
    "NOREPLICAS": _unavailable("too few replicas are in sync: start them, or lower min-replicas-to-write"),
    "OOM": _unavailable("it is out of memory: raise its maxmemory or keep less"),
    "IOERR": _unavailable("a node of the cluster cannot reach another: look at its log"),
    "INPROG": _unavailable("a failover is in progress: wait until it has ended"),
    # The cluster is changing.
    "CLUSTERDOWN": _unavailable("the cluster is down or misses slots: look at CLUSTER INFO"),
    "TRYAGAIN": _unavailable("the cluster is moving these keys to another node: try again"),
    "MOVED": _unavailable("the cluster has moved these keys to another node: try again"),
    "ASK": _unavailable("the cluster is moving these keys to another node: try again"),
    "REDIRECT": _unavailable("a failover is in progress: try again"),
    # The server refuses the caller.
    "NOAUTH": _unavailable("it needs a password: put one into the Valkey URL"),
    "WRONGPASS": _unavailable("it refuses the user or password in the Valkey URL"),
    "NOPERM": _unavailable("its ACL denies a command or key that Laurels needs: grant it to the user"),
    "DENIED": _unavailable("it runs in protected mode: set a password there or bind it to an address"),
    # Another program wrote to a key of Laurels.
    "WRONGTYPE": _unavailable("another program has overwritten a key of Laurels: its log names the key"),
    # The server ended a blocking command.
    "UNBLOCKED": Meaning(Outcome.UNKNOWN, "the node changed its role during the command"),
    # Mistakes of Laurels.
    "ERR": _DEFECT,
    "CROSSSLOT": _DEFECT,
    "NOSCRIPT": _DEFECT,
    "EXECABORT": _DEFECT,
    "NOPROTO": _DEFECT,
    "NOTBUSY": _DEFECT,
    "BUSYGROUP": _DEFECT,
    "BUSYKEY": _DEFECT,
    "NOGROUP": _DEFECT,
    "NOGOODSLAVE": _DEFECT,
}
# Errors whose first word does not tell them apart.
VALKEY_TEXTS: Final[dict[str, Meaning]] = {
    "max number of clients": _unavailable("too many clients are connected: raise its maxclients"),
    "ACL failure in script": VALKEY["NOPERM"],
    "The user executing the script": VALKEY["NOPERM"],  # Redis 7.0
    "Script killed by user": _unavailable("someone stopped the function"),
    "without any password configured": _unavailable("it has no password, but the Valkey URL names one"),
    "Function not found": _unavailable("it lost Laurels' functions: Laurels loads them again"),
}
# The error came from a running function, which may have written before it failed.
_WITHIN_A_FUNCTION = re.compile(r"script: (\w+, )?on @")

# By SQLSTATE or its class.
POSTGRES: Final[dict[str, Meaning]] = {
    "08": _unavailable("the connection broke"),
    "25006": _unavailable("it is read-only: name the primary in the PostgreSQL URL"),
    "25P": _unavailable("it ended a transaction that took too long"),
    "26": _unavailable("a pooler lost a prepared statement: use its session mode"),
    "28": _unavailable("it refuses the user or password in the PostgreSQL URL"),
    "3D": _unavailable("the database in the PostgreSQL URL does not exist: create it"),
    "40": _unavailable("two transactions conflicted"),
    "42501": _unavailable("the user lacks a privilege: grant it"),
    "53100": _unavailable("its disk is full: free some space there"),
    "53200": _unavailable("it is out of memory"),
    "53300": _unavailable("too many clients are connected: raise max_connections"),
    "53": _unavailable("it lacks resources: look at its log"),
    "54": _unavailable("a limit of the server is reached: look at its log"),
    "55": _unavailable("a lock blocks the query"),
    "57": _unavailable("it is shutting down, or cancelled the query"),
    "58": _unavailable("it cannot read or write its files: look at its log"),
    "F0": _unavailable("its configuration file is locked or wrong: look at its log"),
    "XX": _unavailable("its files or indexes are damaged: look at its log"),
}


def of_valkey(text: str, *, writing: bool) -> Meaning:
    """What an error reply means; `text` includes its first word."""
    found = (meaning for known, meaning in VALKEY_TEXTS.items() if known in text)
    meaning = next(found, None) or VALKEY.get(text.partition(" ")[0], _DEFECT)
    if writing and meaning.outcome is Outcome.UNAVAILABLE and _WITHIN_A_FUNCTION.search(text):
        return meaning._replace(outcome=Outcome.UNKNOWN)
    return meaning


# For a refused connection the driver gives no SQLSTATE.
POSTGRES_TEXTS: Final[dict[str, Meaning]] = {
    "too many clients": POSTGRES["53300"],
    "connection slots are reserved": POSTGRES["53300"],
    "too many connections for": POSTGRES["53300"],
    "authentication failed": POSTGRES["28"],
    "no pg_hba.conf entry": POSTGRES["28"],
    "the database system is": _unavailable("it is starting, stopping or recovering: wait until it is done"),
}


def of_postgres(state: str | None, text: str = "") -> Meaning:
    """What an error with this SQLSTATE means; without one, the connection failed."""
    if state is None:
        return next((POSTGRES_TEXTS[known] for known in POSTGRES_TEXTS if known in text), POSTGRES["08"])
    return next((POSTGRES[state[:size]] for size in (5, 3, 2) if state[:size] in POSTGRES), _DEFECT)
