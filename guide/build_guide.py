"""Builds the guide from docs/ into src/laurels/guide, unless it is up to date.

    python guide/build_guide.py [--force]

It needs the packages of the group `docs`. A broken link is an error. Readers see the old guide until the new
one is complete.
"""

from __future__ import annotations

import fcntl
import gzip
import os
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
OUT = ROOT / "src" / "laurels" / "guide"
STAMP = HERE / ".built"
SOURCES = (
    "mkdocs.yml",
    "docs",
    "guide",
    "src/laurels",
    "examples",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
)
SUFFIXES = {".css", ".json", ".md", ".png", ".py", ".svg", ".toml", ".yml"}
COMPRESSED = {".css", ".html", ".js", ".json", ".svg"}


class CannotBuild(Exception):
    """With what mkdocs printed."""


def main() -> None:
    try:
        built = build(force="--force" in sys.argv[1:])
    except CannotBuild as error:
        sys.exit(str(error))
    if built:
        print("Built the guide.")


def build(*, force: bool = False) -> bool:
    """Returns whether it built anything."""
    with (HERE / ".built.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        sources = _digest()
        if not force and is_built(sources):
            return False
        fresh, old = OUT.with_name("guide.new"), OUT.with_name("guide.old")
        shutil.rmtree(fresh, ignore_errors=True)
        # The theme announces its successor; see docs/decisions/0036.
        environment = {
            **os.environ,
            "NO_MKDOCS_2_WARNING": "1",
            "PYTHONPATH": os.pathsep.join([str(HERE), str(ROOT / "src")]),
        }
        # Not `--quiet`: mkdocs would not count its warnings then, and `--strict` would let them pass.
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(fresh)]
        run = subprocess.run(command, cwd=ROOT, env=environment, check=False, capture_output=True, text=True)
        if run.returncode:
            raise CannotBuild(f"{run.stdout}{run.stderr}The guide cannot be built; the lines above say why.")
        _trim(fresh)
        shutil.rmtree(old, ignore_errors=True)
        if OUT.exists():
            OUT.rename(old)
        fresh.rename(OUT)
        shutil.rmtree(old, ignore_errors=True)
        STAMP.write_text(sources)
        return True


def is_built(sources: str | None = None) -> bool:
    return (OUT / "index.html").is_file() and STAMP.is_file() and STAMP.read_text() == (sources or _digest())


def _trim(site: Path) -> None:
    """Removes files that readers do not need, and adds compressed copies."""
    for name in ("404.html", "sitemap.xml", "sitemap.xml.gz", "objects.inv", "assets/images/favicon.png"):
        (site / name).unlink(missing_ok=True)
    shutil.rmtree(site / "assets" / "javascripts" / "lunr", ignore_errors=True)
    for path in [*site.rglob("*")]:
        if path.suffix == ".map":
            path.unlink()
        elif path.suffix in COMPRESSED:
            path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))


def _digest() -> str:
    """A digest of the names and contents of the sources."""
    seen = sha256()
    for name in SOURCES:
        place = ROOT / name
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if path.suffix in SUFFIXES and path.is_file() and not path.is_relative_to(OUT):
                seen.update(f"{path.relative_to(ROOT)}\0".encode() + sha256(path.read_bytes()).digest())
    return seen.hexdigest()


if __name__ == "__main__":
    main()
