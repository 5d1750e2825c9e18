"""Errors of data folders and servers: one clear message each, with its remedy."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from embedded_processes import processes_of

from laurels import embedded
from laurels.embedded import binaries, folder
from laurels.errors import DataFolderUnusable, StartupError

if TYPE_CHECKING:
    from pathlib import Path


def refusal(data_dir: Path) -> str:
    with pytest.raises(DataFolderUnusable) as raised:
        embedded.start(data_dir)
    assert "\n" not in raised.value.detail
    return raised.value.detail


def test_a_file_is_no_data_folder(data_dir: Path):
    data_dir.write_text("")
    assert (
        refusal(data_dir) == f"{data_dir} is a file, or is inside one: choose another folder with --data-dir"
    )
    assert "is a file" in refusal(data_dir / "below")


def test_a_folder_with_other_files_is_left_alone(data_dir: Path):
    data_dir.mkdir(mode=0o755)
    (data_dir / "thesis.txt").write_text("")
    mode = data_dir.stat().st_mode
    assert refusal(data_dir) == f"{data_dir} holds other files: choose an empty folder with --data-dir"
    assert [path.name for path in data_dir.iterdir()] == ["thesis.txt"]
    assert data_dir.stat().st_mode == mode


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_refused(data_dir: Path):
    data_dir.mkdir(mode=0o500)
    assert f"cannot write to {data_dir}" in refusal(data_dir)


def test_a_full_disk_is_reported_before_anything_is_made(data_dir: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(folder, "LEAST_FREE_BYTES", 2**62)
    assert "MB free: make room" in refusal(data_dir)


def test_a_lock_that_is_a_link_is_not_followed(data_dir: Path, place: Path):
    data_dir.mkdir()
    (place / "precious").write_text("kept")
    (data_dir / "lock").hardlink_to(place / "precious")
    assert "is not a plain file" in refusal(data_dir)
    assert (place / "precious").read_text() == "kept"


def test_a_cluster_of_another_version_is_refused(data_dir: Path):
    embedded.start(data_dir).stop()
    (data_dir / "postgres" / "PG_VERSION").write_text("16\n")
    assert "was made by PostgreSQL 16, and this is 18." in refusal(data_dir)


def test_a_lost_password_is_an_error(data_dir: Path):
    embedded.start(data_dir).stop()
    (data_dir / "postgres.password").unlink()
    assert "postgres.password is missing" in refusal(data_dir)


def test_a_server_that_stops_at_its_start_is_named_with_the_end_of_its_log(data_dir: Path):
    embedded.start(data_dir).stop()
    (data_dir / "valkey" / "appendonlydir" / "appendonly.aof.manifest").write_text("nonsense\n")
    with pytest.raises(
        StartupError, match=r"(?s)Valkey stopped while starting \(exit code 1\):.*AOF manifest"
    ):
        embedded.start(data_dir)
    assert processes_of(data_dir) == []


def test_a_platform_without_servers_is_an_error(data_dir: Path, place: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(binaries, "_package", lambda _: place)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType] a stub
    with pytest.raises(StartupError, match="no server for this platform"):
        embedded.start(data_dir)
