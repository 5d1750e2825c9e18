"""What the tests need of a Debian beside a browser: its Redis, the oldest server that is supported, and
libfaketime, by which a process sees another time. Root installs what is missing.

python tests/install_packages.py
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

PROGRAM = "redis-server"
ADVICE = "install Redis 7.0 or newer; on Debian and Ubuntu: apt install redis-server"
FAKETIME_ADVICE = "install libfaketime; on Debian and Ubuntu: apt install libfaketime"


def faketime() -> Path | None:
    return next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)


def missing() -> dict[str, str]:
    """The packages that are not there, and what to do."""
    lacking = {} if shutil.which(PROGRAM) else {PROGRAM: ADVICE}
    return lacking if faketime() else {**lacking, "libfaketime": FAKETIME_ADVICE}


def install(packages: list[str]) -> None:
    sys.stderr.write(f"Installing for the tests: {' '.join(packages)}\n")
    for command in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *packages]):
        if subprocess.run(["/usr/bin/apt-get", *command], check=False).returncode:
            return


def main() -> None:
    if missing() and os.geteuid() == 0 and Path("/usr/bin/apt-get").exists():
        install(list(missing()))
    for advice in missing().values():
        message = f"Some tests are skipped: {advice}.\n"
        if os.environ.get("CI") == "true":
            sys.exit(message)
        sys.stderr.write(message)


if __name__ == "__main__":
    main()
