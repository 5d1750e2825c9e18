from django.db import models

from laurels.django import LeaderboardIndex


class Player(models.Model):
    name = models.CharField(max_length=40, unique=True)

    def __str__(self) -> str:
        return self.name


class GameScore(models.Model):
    player = models.ForeignKey(Player, on_delete=models.CASCADE)
    region = models.CharField(max_length=20)
    score = models.BigIntegerField()
    played_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [
            LeaderboardIndex(score="score", group_by=["region"], window="daily", keep=7, at="played_at"),
        ]

    def __str__(self) -> str:
        return f"{self.player_id}: {self.score}"
