from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from typing import TYPE_CHECKING, Any

import httpx
import psutil
import pytest
from cli_processes import run, serving
from waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from cli_processes import Past, Served


def boards_with(key: str, served: Served) -> httpx.Response:
    return httpx.get(f"{served.url}/v1/projects/demo/boards", headers={"Authorization": f"Bearer {key}"})


def test_it_says_where_it_answers_and_with_which_key(served: Served):
    welcome = served.welcome
    assert httpx.get(f"{welcome['url']}/readyz").status_code == 200
    assert welcome["page"] == f"{welcome['url']}/boards/demo/arcade#key={welcome['key']}"
    assert boards_with(welcome["key"], served).status_code == 200


def pasted(commands: list[str]) -> list[dict[str, Any]]:
    bash = ("bash", "-c")
    return [json.loads(subprocess.check_output([*bash, command])) for command in commands]


def test_the_commands_that_it_prints_work_when_pasted(served: Served):
    submitted, top = pasted(served.welcome["commands"])
    assert (submitted["member"], submitted["score"]) == ("you", 42_000)
    assert len(top["entries"]) == 5


def test_without_a_board_the_first_command_defines_one(data_dir: Path):
    with serving(data_dir) as served:
        assert served.welcome["page"] == f"{served.url}/#key={served.welcome['key']}"
        defined, submitted, top = pasted(served.welcome["commands"])
    assert defined["project"] == "my-game"
    assert submitted["rank"] == 1
    assert [entry["member"] for entry in top["entries"]] == ["you"]


def test_invented_campuses_are_served_to_one_of_their_people(data_dir: Path):
    with serving(data_dir, "--campus", "--no-jobs") as served:
        page, _, token = served.welcome["campus"].partition("#token=")
        summary = httpx.get(f"{page}/me/summary", headers={"Authorization": f"Bearer {token}"}).json()
        assert served.end(signal.SIGTERM) == 0
    assert summary["handle"]
    with serving(data_dir, "--campus", "--no-jobs") as served:
        again = served.welcome["campus"].partition("#token=")[2]
        url = f"{served.url}/leaderboards/me/summary"
        assert (
            httpx.get(url, headers={"Authorization": f"Bearer {again}"}).json()["user_id"]
            == summary["user_id"]
        )
        assert httpx.get(url, headers={"Authorization": f"Bearer {token}"}).status_code == 401


def test_the_local_key_is_for_its_owner_only(served: Served):
    file = served.data_dir / "local.key"
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.read_text().strip() == served.welcome["key"]


def test_a_second_serve_is_refused_and_names_the_first(served: Served):
    complaint = run("serve", "--port", "0", data_dir=served.data_dir).complaint
    assert f"is in use by process {served.process.pid}" in complaint
    assert "--data-dir" in complaint


def test_port_in_use_is_reported_before_anything_starts(data_dir: Path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        complaint = run("serve", "--port", str(port), data_dir=data_dir).complaint
    assert f"port {port} of 127.0.0.1 is in use" in complaint
    assert "--port" in complaint
    assert not data_dir.exists()


def test_unusable_host_is_reported(data_dir: Path):
    assert "--host" in run("serve", "--host", "203.0.113.1", data_dir=data_dir).complaint
    assert "--host" in run("serve", "--host", "no such host", data_dir=data_dir).complaint


@pytest.mark.parametrize("command", ["serve", "top"])
def test_unusable_data_folder_is_reported(data_dir: Path, command: str):
    data_dir.write_text("a file, not a folder")
    words = [command, "--port", "0"] if command == "serve" else [command, "demo/arcade"]
    assert "--data-dir" in run(*words, data_dir=data_dir).complaint


def test_a_restart_keeps_the_key_and_the_scores(past: Past):
    assert past.code == 0
    with serving(past.data_dir, "--demo") as served:
        assert served.welcome["key"] == past.key
        page = run("top", "demo/arcade", "--period", "all_time", "--json", data_dir=past.data_dir).document
        assert page["total"] == 5000
        assert served.end(signal.SIGINT) == 130
    assert not processes_of(past.data_dir)


def test_open_to_others_there_is_no_local_key(past: Past):
    everywhere = ("--host", "0.0.0.0")  # noqa: S104  # what it is about
    bootstrap = {"LAURELS_BOOTSTRAP_KEY": "a-long-and-random-one"}
    with serving(past.data_dir, *everywhere, settings=bootstrap) as served:
        assert served.welcome["key"] is None
        assert "#key" not in served.welcome["page"]
        assert "$LAURELS_BOOTSTRAP_KEY" in served.welcome["commands"][0]
        assert boards_with(past.key, served).status_code == 401
        assert boards_with("a-long-and-random-one", served).status_code == 200


def workers_of(served: Served) -> list[psutil.Process]:
    children = psutil.Process(served.process.pid).children()
    return [child for child in children if "spawn_main" in " ".join(child.cmdline())]


def test_workers_answer_and_stop_together(past: Past):
    with serving(past.data_dir, "--workers", "2") as served:
        workers = workers_of(served)
        assert len(workers) == 2
        assert boards_with(served.welcome["key"], served).status_code == 200
        assert served.end(signal.SIGINT) == 130
        assert not any(worker.is_running() for worker in workers)


def test_killed_it_leaves_nothing_behind(past: Past):
    with serving(past.data_dir, "--workers", "2") as served:
        workers = workers_of(served)
        served.end(signal.SIGKILL)
        until(lambda: not any(worker.is_running() for worker in workers))
        until(lambda: not processes_of(past.data_dir))


def processes_of(data_dir: Path) -> list[int]:
    """Those whose command line names the folder: the supervisor and both servers."""
    return [pid for pid in psutil.pids() if pid != os.getpid() and str(data_dir) in " ".join(_words(pid))]


def _words(pid: int) -> list[str]:
    try:
        return psutil.Process(pid).cmdline()
    except psutil.Error:
        return []
