"""Takes the pictures of the README: three pages, of invented data, into docs/pictures.

    python web/pictures.py

It starts a Laurels in a temporary folder, and the browser of the tests.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
from playwright.async_api import async_playwright, expect

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests" / "web"))

from install_browser import on_the_machine  # noqa: E402  # found through the line above

if TYPE_CHECKING:
    from playwright.async_api import Page

PICTURES = ROOT / "docs" / "pictures"
SIZE = {"width": 1280, "height": 960}
PATIENCE_SECONDS = 120


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="laurels-pictures-") as folder:
        Path(folder).chmod(0o711)  # root's servers run as somebody else
        command = [
            sys.executable,
            "-m",
            "laurels.cli",
            "serve",
            "--demo",
            "--campus",
            "--port",
            "0",
            "--json",
        ]
        with subprocess.Popen(
            [*command, "--data-dir", f"{folder}/data"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process:
            try:
                welcome = json.loads(process.stdout.readline() if process.stdout else "")
                finish_days(welcome)
                asyncio.run(take(welcome))
            finally:
                process.terminate()


def finish_days(welcome: dict[str, Any]) -> None:
    """Until the days that ended are finalized: there are streaks and badges then."""
    page, _, token = welcome["campus"].partition("#token=")
    key = {"Authorization": f"Bearer {welcome['key']}"}
    httpx.post(f"{welcome['url']}/v1/jobs/campus_days/run", headers=key).raise_for_status()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        summary = httpx.get(f"{page}/me/summary", headers={"Authorization": f"Bearer {token}"}).json()
        if summary["streak"]["current"]:
            return
        time.sleep(0.5)
    sys.exit("The days of the campuses were not finalized in time.")


async def take(welcome: dict[str, Any]) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=on_the_machine(), chromium_sandbox=os.geteuid() != 0
        )
        context = await browser.new_context(viewport=SIZE, locale="en-GB", color_scheme="light")  # pyright: ignore[reportArgumentType]  # a TypedDict
        page = await context.new_page()
        await page.goto(welcome["campus"])
        await expect(page.get_by_role("heading", name="Badges")).to_be_visible()
        await shoot(page, "leaderboards")
        await page.goto(f"{welcome['url']}/boards/demo/arcade#key={welcome['key']}")
        await expect(page.get_by_role("row").nth(5)).to_be_visible()
        await shoot(page, "boards")
        await page.goto(f"{welcome['url']}/console")
        await page.get_by_label("Admin key").fill(welcome["key"])
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.get_by_role("heading", level=1)).to_be_visible()
        await play(welcome)
        await shoot(page, "console")
        await browser.close()


async def play(welcome: dict[str, Any]) -> None:
    """Half a minute of scores, now more and now less, so that the plots have something to draw."""
    chance = random.Random(1)  # noqa: S311  # no secret
    url = f"{welcome['url']}/v1/projects/demo/boards/arcade/scores/batch"
    headers = {"Authorization": f"Bearer {welcome['key']}"}
    async with httpx.AsyncClient(headers=headers) as client:
        for second in range(30):
            count = round(300 + 250 * math.sin(second / 4))
            scores = [
                {"member": f"player-{chance.randrange(999)}", "score": chance.randrange(9_000)}
                for _ in range(count)
            ]
            (await client.post(url, json=scores)).raise_for_status()
            await asyncio.sleep(1)


async def shoot(page: Page, name: str) -> None:
    await page.wait_for_timeout(1_000)  # whatever glides has arrived
    path = PICTURES / f"{name}.png"
    await page.screenshot(path=path)
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
