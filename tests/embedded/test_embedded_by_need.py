"""A server whose URL is set runs elsewhere and is not started."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from laurels import Laurels, embedded
from laurels.embedded import ExternalServers
from laurels.errors import DataFolderUnusable

if TYPE_CHECKING:
    from pathlib import Path

    from laurels.embedded import EmbeddedServers, Endpoints


def only(endpoints: Endpoints, name: str) -> ExternalServers:
    if name == "valkey":
        return ExternalServers(valkey_url=endpoints.valkey_url)
    return ExternalServers(postgres_url=endpoints.postgres_url)


@pytest.mark.parametrize(("elsewhere", "started"), [("valkey", "postgres"), ("postgres", "valkey")])
def test_only_the_server_without_a_url_is_started(
    running: EmbeddedServers, data_dir: Path, elsewhere: str, started: str
):
    external = only(running.endpoints, elsewhere)
    with embedded.start(data_dir, external=external) as servers:
        assert set(servers.pids) == {"supervisor", started}
        assert (servers.endpoints.valkey_url == running.endpoints.valkey_url) == (elsewhere == "valkey")
        assert (servers.endpoints.postgres_url == running.endpoints.postgres_url) == (elsewhere == "postgres")
        assert embedded.attach(data_dir, external) == servers.endpoints


@pytest.mark.parametrize(("elsewhere", "started"), [("valkey", "postgres"), ("postgres", "valkey")])
async def test_laurels_works_on_one_server_of_its_own_and_one_elsewhere(
    running: EmbeddedServers, data_dir: Path, elsewhere: str, started: str
):
    external = only(running.endpoints, elsewhere)
    valkey_url, postgres_url = external.valkey_url, external.postgres_url
    async with Laurels(data_dir=data_dir, valkey_url=valkey_url, postgres_url=postgres_url) as laurels:
        runtime = embedded.inspect(data_dir)
        assert set(runtime.pids) == {"supervisor", started}
        await laurels.define("acme/need")
        assert (await laurels.submit("acme/need", "ada", 5)).rank == 1
        await laurels.drop("acme/need", allow_drop="all")


@pytest.mark.parametrize("urls", [(), ("valkey",), ("postgres",), ("valkey", "postgres")], ids="+".join)
async def test_servers_that_the_environment_names_are_not_started(
    running: EmbeddedServers,
    place: Path,
    data_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
    urls: tuple[str, ...],
):
    for name in urls:
        url: str = getattr(running.endpoints, f"{name}_url")
        monkeypatch.setenv(f"LAURELS_{name.upper()}_URL", url)
    async with Laurels(data_dir=data_dir) as laurels:
        await laurels.define("acme/environment")
        await laurels.drop("acme/environment")
        pids = set(embedded.inspect(data_dir).pids)
        assert pids == ({"supervisor", "valkey", "postgres"} - {*urls} if len(urls) < 2 else set())
    assert os.listdir(place) == [] or len(urls) < 2  # noqa: PTH208  # no pathlib where others wait


@pytest.mark.parametrize(
    ("elsewhere", "variable"), [("valkey", "LAURELS_VALKEY_URL"), ("postgres", "LAURELS_POSTGRES_URL")]
)
def test_attaching_without_the_url_says_which_to_set(
    running: EmbeddedServers, data_dir: Path, elsewhere: str, variable: str
):
    with (
        embedded.start(data_dir, external=only(running.endpoints, elsewhere)),
        pytest.raises(DataFolderUnusable, match=f"set {variable} to the same URL"),
    ):
        embedded.attach(data_dir)
