from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_POST
from django.views.generic import ListView

from scores.models import GameScore, Player


class Top(ListView):
    """Today's scores, best first, 50 on a page; `?region=asia` for one region."""

    template_name = "scores/top.html"
    paginate_by = 50

    def get_queryset(self):
        ranking = GameScore.leaderboard.using(GameScore.objects.select_related("player"))
        region = self.request.GET.get("region")
        return ranking.group(region) if region else ranking


@require_POST
def add(request: HttpRequest) -> HttpResponse:
    player, _ = Player.objects.get_or_create(name=request.POST["player"])
    score = GameScore.objects.create(
        player=player, region=request.POST["region"], score=int(request.POST["score"])
    )
    # The request is a transaction (ATOMIC_REQUESTS): the score is ranked once it is committed.
    transaction.on_commit(GameScore.leaderboard.caught_up)
    return JsonResponse({"id": score.pk}, status=201)


def player(_: HttpRequest, key: int) -> HttpResponse:
    """A player's best score of today, and its rank."""
    scores = GameScore.objects.filter(player=get_object_or_404(Player, pk=key))
    best = next(iter(GameScore.leaderboard.among(scores)), None)
    if best is None:
        return JsonResponse({"rank": None})
    return JsonResponse({"rank": best.rank, "score": best.score})
