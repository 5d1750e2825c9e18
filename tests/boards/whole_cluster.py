"""The tests' cluster, waited for in a way that holds for every redis-py."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import valkey_cluster

if TYPE_CHECKING:
    from collections.abc import Generator


@contextmanager
def running_whole_cluster(primaries: int) -> Generator[str]:
    """The URL of a cluster on loopback, once every primary says that it is whole."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(valkey_cluster, "_is_whole", _is_whole)
        with valkey_cluster.running_cluster(primaries) as url:
            yield url


def _is_whole(client: Any, primaries: int) -> bool:  # noqa: ANN401  # redis-py types its client only in part
    # redis-py parses the reply of this command only under its one-word name.
    info = client.execute_command("CLUSTER INFO")
    return (info["cluster_state"], info["cluster_size"]) == ("ok", str(primaries))
