"""Leaderboards of Django models: rows in Django's tables, ranks in Valkey.

    INSTALLED_APPS = [..., "laurels.django"]

    class GameScore(models.Model):
        player = models.ForeignKey(Player, on_delete=models.CASCADE)
        region = models.CharField(max_length=20)
        score = models.BigIntegerField()

        class Meta:
            indexes = [LeaderboardIndex(score="score", group_by=["region"], window="daily", keep=7)]

`manage.py makemigrations` and `migrate` install it, as they do for any other index. Then

    GameScore.leaderboard.top(10)                      # [Ranked(item, score, rank), …]; items are rows
    GameScore.leaderboard.group("asia").rank(score)    # None without an entry
    await GameScore.leaderboard.atop(10)               # each read has a twin for async views

- `index`          the declaration, as an index of `Meta`, and the SQL that migrations run
- `twins`          a model's table and declarations as SQLAlchemy's, which `laurels.index` works on
- `ranking`        `GameScore.leaderboard`
- `opened`         the Laurels of this process, opened at the first read
- `configuration`  `LAURELS` in the settings
- `checks`         `manage.py check`
- `test`           a base class for tests
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from laurels.lazy_names import lazy_names

if TYPE_CHECKING:
    from laurels.django.index import LeaderboardIndex
    from laurels.django.opened import close
    from laurels.django.ranking import ModelRanking

__all__ = ["LeaderboardIndex", "ModelRanking", "close"]

__getattr__ = lazy_names(
    __name__,
    {
        "LeaderboardIndex": "laurels.django.index",
        "ModelRanking": "laurels.django.ranking",
        "close": "laurels.django.opened",
    },
)
