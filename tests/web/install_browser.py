"""A browser for the tests: Chromium's headless shell, or else the machine's Chromium or Chrome.

The headless shell has no windows to draw: it takes less than half of the processor time.

    python tests/web/install_browser.py

Root of a Debian takes its package; everybody else without a browser Playwright's own download.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

HEADLESS_SHELL = "chromium-headless-shell"
PROGRAMS = (
    HEADLESS_SHELL,
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)
APT = [
    ["apt-get", "update", "-qq"],
    ["apt-get", "install", "-y", "-qq", "--no-install-recommends", HEADLESS_SHELL],
]
PLAYWRIGHT = [[sys.executable, "-m", "playwright", "install", HEADLESS_SHELL]]


def on_the_machine() -> str | None:
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


def of_playwright() -> bool:
    from playwright.sync_api import sync_playwright  # noqa: PLC0415  # half a second that most runs do without

    with sync_playwright() as playwright:
        return Path(playwright.chromium.executable_path).exists()


def installed(commands: list[list[str]]) -> bool:
    sys.stderr.write(f"Installing for the tests: {HEADLESS_SHELL}\n")
    return all(subprocess.run(command, check=False).returncode == 0 for command in commands)


def main() -> None:
    if shutil.which(HEADLESS_SHELL):
        return
    is_debian_s_root = os.geteuid() == 0 and shutil.which("apt-get")
    if is_debian_s_root and installed(APT):
        return
    if on_the_machine() or of_playwright() or installed(PLAYWRIGHT):
        return
    sys.exit(
        "The tests need a browser, and none could be installed: install Chromium; `chromium` is looked for."
    )


if __name__ == "__main__":
    main()
