"""Models with leaderboards of every kind that Django has."""

from __future__ import annotations

import uuid

from django.db import models

from laurels.django import LeaderboardIndex


class Region(models.TextChoices):
    ASIA = "asia"
    EUROPE = "europe"


class Tier(models.IntegerChoices):
    GOLD = 1
    SILVER = 2


class Team(models.Model):
    name = models.CharField(max_length=40)


class GameScore(models.Model):
    team = models.ForeignKey(Team, null=True, on_delete=models.CASCADE)
    region = models.CharField(max_length=20, choices=Region)
    tier = models.IntegerField(choices=Tier, default=Tier.GOLD)
    score = models.BigIntegerField(null=True)
    seconds = models.IntegerField(default=0)

    class Meta:
        indexes = [
            LeaderboardIndex(score="score", group_by=["region", "tier"], dense=True),
            LeaderboardIndex(
                score="score",
                label="teams",
                member="team",
                windows=["all_time", "weekly"],
                timezone="Asia/Tokyo",
            ),
            LeaderboardIndex(score="seconds", label="fastest", group_by=["team_id"], order="asc"),
            models.Index(fields=["seconds"], name="plain"),
        ]


class Visible(models.Manager):
    def get_queryset(self):
        return super().get_queryset().filter(is_hidden=False)


class Play(models.Model):
    """An abstract declaration, a UUID, a table in another schema, and a manager that hides rows."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    points = models.PositiveBigIntegerField()
    is_hidden = models.BooleanField(default=False)
    day = models.DateField()
    visible = Visible()

    class Meta:
        abstract = True
        indexes = [LeaderboardIndex(score="points", group_by=["day"], window="hourly", keep=3)]


class Solo(Play):
    class Meta(Play.Meta):
        db_table = 'public"."odd solo'


class LoudSolo(Solo):
    class Meta:
        proxy = True


class Round(models.Model):
    """A primary key of several columns."""

    pk = models.CompositePrimaryKey("season", "number")
    season = models.CharField(max_length=10)
    number = models.IntegerField()
    points = models.IntegerField()

    class Meta:
        indexes = [LeaderboardIndex(score="points")]
