"""Rates and tails of the service over HTTP by the number of connections, beside an app that does nothing on
the same server.

wrk sends new scores to a board with four windows. Both apps have their turn at each number of connections.
"""

from __future__ import annotations

import shutil
from contextlib import ExitStack

from bench.http import COMPARED, WITHOUT_WRK, Load, Seen, bare_app, compared, fill, serving, temporary_folder
from bench.results import CannotMeasure, Panel, Plot, Results, Series, counted

CONNECTIONS = (1, 4, 16, 32, 64, 128, 256)
SECONDS = 2
SHARES = {"p50": "p50", "p99": "p99", "p999": "p99.9"}


async def run(members: int) -> Results:
    if shutil.which("wrk") is None:
        raise CannotMeasure(WITHOUT_WRK)
    seen: dict[str, list[tuple[Seen, Seen]]] = {kind: [] for kind in COMPARED}
    with ExitStack() as servers:
        folder = servers.enter_context(temporary_folder())
        bare = servers.enter_context(bare_app())
        service = servers.enter_context(serving(folder / "data"))
        tokens = folder / "tokens"
        fill(service, members, tokens)
        load = Load(members, tokens)
        for kind in COMPARED:
            for port in (bare, service):
                load(port, kind, seconds=1)  # warm
            for connections in CONNECTIONS:
                pair = load(bare, kind, connections, SECONDS), load(service, kind, connections, SECONDS)
                seen[kind].append(pair)
    rows = [
        compared(f"{kind}, {counted(connections, 'connections')}", [ours], ("bare app", [bare]), None)
        for kind, turns in seen.items()
        for connections, (bare, ours) in zip(CONNECTIONS, turns, strict=True)
    ]
    return Results(rows, plots(seen))


def plots(seen: dict[str, list[tuple[Seen, Seen]]]) -> list[Plot]:
    rates = [
        Panel(
            kind,
            (
                Series("Laurels", points([ours.rate for _, ours in turns])),
                Series("bare ASGI app", points([bare.rate for bare, _ in turns]), is_control=True),
            ),
        )
        for kind, turns in seen.items()
    ]
    tails = [
        Panel(
            kind,
            (
                *(
                    Series(f"Laurels, {name}", points([1000 * getattr(ours, share) for _, ours in turns]))
                    for share, name in SHARES.items()
                ),
                Series("bare ASGI app, p99", points([1000 * bare.p99 for bare, _ in turns]), is_control=True),
            ),
        )
        for kind, turns in seen.items()
    ]
    return [
        Plot("rates", "Rates by connections", "connections", "requests a second", rates),
        Plot("tails", "Tails by connections", "connections", "milliseconds", tails),
    ]


def points(figures: list[float]) -> list[tuple[float, float]]:
    return [*zip(CONNECTIONS, figures, strict=True)]
