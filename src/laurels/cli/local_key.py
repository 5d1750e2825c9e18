"""The local key: an admin key for every project, made once and kept in the data folder.

It is valid only while both stores are embedded and Laurels listens on loopback. Otherwise `serve` revokes it.
"""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING

from laurels.errors import DataFolderUnusable

if TYPE_CHECKING:
    from pathlib import Path

LABEL = "local"
FILE = "local.key"


def local_key(data_dir: Path) -> str:
    """The secret, the same at each start. Only the user who runs Laurels can read the file."""
    path = data_dir / FILE
    try:
        with os.fdopen(
            os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "w"
        ) as file:
            file.write(f"lk_{LABEL}_{secrets.token_urlsafe(32)}\n")
    except FileExistsError:
        pass
    secret = path.read_text().strip()
    if not secret.startswith(f"lk_{LABEL}_"):
        raise DataFolderUnusable(f"{path} does not hold a key: remove it; the next start makes a new one")
    return secret
