"""Leaderboards declared on models: records in PostgreSQL, ranks in Valkey.

    class GameScore(Base):
        __tablename__ = "game_scores"
        __leaderboards__ = [LeaderboardIndex(score="score", group_by=["region"], window="daily", keep=7)]
        id: Mapped[str] = mapped_column(primary_key=True)
        region: Mapped[str]
        score: Mapped[int] = mapped_column(BigInteger)

    await install(engine, GameScore)                     # once, as a migration: triggers that fill the outbox
    async with Laurels() as laurels, Indexes(laurels, engine, [GameScore]) as index:
        async with index.maintaining():                  # in one process or several: applies commits
            await index.caught_up()                      # read your writes
            best = await leaderboard(GameScore).group("asia").top(10)        # [Ranked(item, score, rank), …]
            rank = await leaderboard(GameScore, "score").rank("player123")   # None when it has no entry

`leaderboard` returns a `Ranking`, which has every query; `entries(k)` returns keys, scores and ranks without
loading records. `Indexes` has `build()`, `status()`, `verify()`, `rebuild()` and `drop()`.

- `declare`    the declared indexes of models; `declaration` says what they mean, `checker` what is wrong
- `members`    a primary key, or a column of members, as the member of a board, in its own order
- `positions`  the places of a record in its windows: the fold of its changes                         pure
- `triggers`   the DDL that captures every change of a table in the same transaction
- `outbox`     the changes that are not applied yet, and what is stored of records
- `rows`       the rows of the table, and which of a member's rows makes its entry
- `apply`      applies the outbox to Valkey, one round at a time; `maintain` when; `rebuild`, `verify`
- `query`      reads a leaderboard; `results` are its answers
- `fusion`     several ranked lists -> one                                                            pure
- `fused`      reads the `sources` (an index, a list of your own, `similar` vectors) and fuses their lists
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from laurels.lazy_names import lazy_names

if TYPE_CHECKING:
    from laurels.index.declare import LeaderboardIndex
    from laurels.index.fused import Fused, Fusion, fuse
    from laurels.index.indexes import Indexes
    from laurels.index.orphans import drop_orphan
    from laurels.index.query import Ranking, leaderboard
    from laurels.index.results import IndexStatus, Placing, Ranked, RankedPage, Window
    from laurels.index.similar import Similar, hnsw_index
    from laurels.index.sources import Leaderboard, RankedList
    from laurels.index.triggers import ddl, install, uninstall
    from laurels.index.verify import Verification

__all__ = [
    "Fused",
    "Fusion",
    "IndexStatus",
    "Indexes",
    "Leaderboard",
    "LeaderboardIndex",
    "Placing",
    "Ranked",
    "RankedList",
    "RankedPage",
    "Ranking",
    "Similar",
    "Verification",
    "Window",
    "ddl",
    "drop_orphan",
    "fuse",
    "hnsw_index",
    "install",
    "leaderboard",
    "uninstall",
]

__getattr__ = lazy_names(
    __name__,
    {
        "Fused": "laurels.index.fused",
        "Fusion": "laurels.index.fused",
        "IndexStatus": "laurels.index.results",
        "Indexes": "laurels.index.indexes",
        "Leaderboard": "laurels.index.sources",
        "LeaderboardIndex": "laurels.index.declare",
        "Placing": "laurels.index.results",
        "Ranked": "laurels.index.results",
        "RankedList": "laurels.index.sources",
        "RankedPage": "laurels.index.results",
        "Ranking": "laurels.index.query",
        "Similar": "laurels.index.similar",
        "Verification": "laurels.index.verify",
        "Window": "laurels.index.results",
        "ddl": "laurels.index.triggers",
        "drop_orphan": "laurels.index.orphans",
        "fuse": "laurels.index.fused",
        "hnsw_index": "laurels.index.similar",
        "install": "laurels.index.triggers",
        "leaderboard": "laurels.index.query",
        "uninstall": "laurels.index.triggers",
    },
)
