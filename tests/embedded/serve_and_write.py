"""Serves the data folder given, and counts up in both stores, one acknowledged number a line."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from embedded_processes import Valkey, postgres

from laurels import embedded


def main() -> None:
    with embedded.start(Path(sys.argv[1])) as servers:
        endpoints = servers.endpoints
        print(json.dumps({"pids": servers.pids, "endpoints": asdict(endpoints)}), flush=True)  # noqa: T201  # to the test
        with Valkey(endpoints) as counter, postgres(endpoints) as rows:
            rows.execute("CREATE TABLE IF NOT EXISTS written (n bigint PRIMARY KEY)")
            while True:
                n = counter.ask("INCR written")
                rows.execute("INSERT INTO written VALUES (%s) ON CONFLICT DO NOTHING", [n])
                print(n, flush=True)  # noqa: T201  # to the test


if __name__ == "__main__":
    main()
