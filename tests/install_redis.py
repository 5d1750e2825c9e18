"""Debian's Redis, the oldest server that Laurels supports, for the tests: root of a Debian installs it.

python tests/install_redis.py
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

PROGRAM = "redis-server"
APT = [
    ["apt-get", "update", "-qq"],
    ["apt-get", "install", "-y", "-qq", "--no-install-recommends", PROGRAM],
]
ADVICE = "install Redis 7.0 or newer; on Debian and Ubuntu: apt install redis-server"


def main() -> None:
    if shutil.which(PROGRAM):
        return
    if os.geteuid() == 0 and shutil.which("apt-get"):
        sys.stderr.write("There is no Redis for the tests yet: installing one.\n")
        if all(subprocess.run(command, check=False).returncode == 0 for command in APT):
            return
    message = f"The tests of Redis are skipped: {ADVICE}.\n"
    if os.environ.get("CI") == "true":
        sys.exit(message)
    sys.stderr.write(message)


if __name__ == "__main__":
    main()
