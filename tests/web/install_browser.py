"""A browser for the tests: the machine's Chromium or Chrome; where there is none, one is installed.

Best is Chromium's headless shell, which has no windows to draw: it takes half of the processor time.

    python tests/web/install_browser.py

Root of a Debian takes Debian's package; everybody else Playwright's own download.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

PROGRAMS = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)
APT = [
    ["apt-get", "update", "-qq"],
    ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium-headless-shell"],
]
PLAYWRIGHT = [[sys.executable, "-m", "playwright", "install", "chromium-headless-shell"]]


def on_the_machine() -> str | None:
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


def of_playwright() -> bool:
    from playwright.sync_api import sync_playwright  # noqa: PLC0415  # half a second that most runs do without

    with sync_playwright() as playwright:
        return Path(playwright.chromium.executable_path).exists()


def main() -> None:
    if on_the_machine() or of_playwright():
        return
    is_debian_s_root = os.geteuid() == 0 and shutil.which("apt-get")
    for commands in (APT, PLAYWRIGHT) if is_debian_s_root else (PLAYWRIGHT,):
        sys.stderr.write("There is no browser for the tests yet: installing one.\n")
        if all(subprocess.run(command, check=False).returncode == 0 for command in commands):
            return
    sys.exit(
        "The tests need a browser, and none could be installed: install Chromium; `chromium` is looked for."
    )


if __name__ == "__main__":
    main()
