"""`Model.leaderboard` on a real database: rows as Django loads them, with the ranks of the index."""

from __future__ import annotations

import inspect
import threading
from datetime import date
from uuid import UUID

import pytest
from django.core.paginator import Paginator
from django.db import connection, transaction
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext
from django.views.generic import ListView
from league.models import GameScore, LoudSolo, Region, Round, Solo, Team, Tier

from laurels.django import ModelRanking, close
from laurels.django.opened import opened
from laurels.errors import Conflict, InvalidInput, WindowGone
from laurels.index import Ranking

SCORES = GameScore.leaderboard.index("score")

pytestmark = pytest.mark.usefixtures("rows")


def add(*scores: int | None, region: str = "asia", **fields: object) -> list[GameScore]:
    rows = GameScore.objects.bulk_create(GameScore(score=score, region=region, **fields) for score in scores)
    SCORES.caught_up()
    return rows


def shown(ranked: list) -> list[tuple[int, int]]:
    return [(each.rank, each.item.score) for each in ranked]


def test_rows_come_with_their_ranks_in_one_query():
    add(50, 70, 60, None)
    with CaptureQueriesContext(connection) as queries:
        top = SCORES.top(10)
    assert shown(top) == [(1, 70), (2, 60), (3, 50)]
    assert all(type(each.item) is GameScore for each in top)
    assert len(queries) == 1
    assert shown(SCORES.top(2)) == [(1, 70), (2, 60)]
    assert shown(SCORES.bottom(2)) == [(3, 50), (2, 60)]
    assert SCORES.top(0) == []


def test_a_place_is_asked_for_by_row_or_key():
    low, high, _ = add(50, 70, 60)
    ranking = SCORES
    assert ranking.rank(low) == ranking.rank(low.pk) == 3
    assert (ranking.score(high), ranking.dense_rank(high), ranking.rank(10**9)) == (70, 1, None)
    assert (ranking.rank_of_score(65), shown(ranking.between(55, 65))) == (2, [(2, 60)])
    assert (ranking.count(), len(ranking), ranking.percentile(1)) == (3, 3, 70)
    assert shown(ranking.around(high, above=1, below=1)) == [(1, 70), (2, 60)]
    assert [(each.rank, each.key) for each in ranking.among([low, high.pk])] == [(1, high.pk), (3, low.pk)]
    assert [each.score for each in ranking.entries(1, "bottom")] == [50]


def test_groups_are_named_by_values_choices_and_rows():
    team = Team.objects.create(name="reds")
    add(50, team=team, seconds=9)
    add(60, region="europe", tier=Tier.SILVER)
    ranking = SCORES
    assert shown(ranking.group(Region.ASIA).top(9)) == shown(ranking.group("asia").top(9)) == [(1, 50)]
    assert shown(ranking.group("europe", Tier.SILVER).top(9)) == [(1, 60)]
    assert shown(ranking.group("europe", Tier.GOLD).top(9)) == []
    fastest = ranking.index("fastest")
    assert shown(fastest.group(team).top(9)) == shown(fastest.group(team.pk).top(9)) == [(1, 50)]
    with pytest.raises(InvalidInput, match="has 2 levels of groups"):
        ranking.group("asia", 1, 2).top(1)
    with pytest.raises(InvalidInput, match="GameScore has several: name one of score, teams, fastest"):
        GameScore.leaderboard.top(1)
    with pytest.raises(InvalidInput, match=r"GameScore has no index 'fast'; did you mean fastest\?"):
        ranking.index("fast").top(1)


def test_rows_of_one_member_are_one_entry_with_the_row_that_makes_it():
    reds, blues = Team.objects.create(name="reds"), Team.objects.create(name="blues")
    add(50, 70, team=reds)
    (row,) = add(60, team=blues)
    add(90)
    ranking = GameScore.leaderboard.index("teams")
    assert [(each.rank, each.item.team_id, each.score) for each in ranking.top(9)] == [
        (1, reds.pk, 70), (2, blues.pk, 60),
    ]  # fmt: skip
    assert ranking.rank(blues) == ranking.rank(blues.pk) == ranking.rank(row) == 2
    assert shown(ranking.around(row, above=1, below=0)) == [(1, 70), (2, 60)]
    assert shown(ranking.period("weekly").top(1)) == [(1, 70)]
    GameScore.objects.filter(score=70).delete()
    GameScore.leaderboard.caught_up()
    assert shown(ranking[0:9]) == [(1, 60), (2, 50)]


def test_windows_can_be_asked_for():
    add(50)
    (now,) = SCORES.windows()
    assert now.entries == 1
    assert shown(SCORES.window(now).top(9)) == [(1, 50)]
    with pytest.raises(WindowGone):
        SCORES.window(now.id - 8).top(9)


def test_every_way_to_write_is_ranked():
    one, other = add(50, 60)
    GameScore.objects.filter(pk=one.pk).update(score=99)
    other.delete()
    SCORES.caught_up()
    assert shown(SCORES.top(9)) == [(1, 99)]
    one.score = None
    one.save()
    SCORES.caught_up()
    assert SCORES.top(9) == []


def test_rows_come_from_the_given_queryset():
    team = Team.objects.create(name="reds")
    add(50, 60, team=team)
    add(70)
    ranking = SCORES.using(GameScore.objects.select_related("team"))
    with CaptureQueriesContext(connection) as queries:
        assert [each.item.team and each.item.team.name for each in ranking.top(9)] == [None, "reds", "reds"]
    assert len(queries) == 1
    reds = SCORES.using(GameScore.objects.filter(team=team))
    assert shown(reds.top(1)) == [(2, 60)]  # the next that is there, with its rank among all


def test_django_paginates_a_ranking():
    add(*range(1, 8))
    page = SCORES.page(2, size=3)
    assert shown(page.object_list) == [(4, 4), (5, 3), (6, 2)]
    assert (page.has_next(), page.paginator.num_pages) == (True, 3)
    assert shown(Paginator(SCORES, 5).page(2).object_list) == [(6, 2), (7, 1)]
    assert shown(SCORES[5:]) == [(6, 2), (7, 1)]
    assert (SCORES[0].rank, SCORES[9:12]) == (1, [])
    assert [each.rank for each in SCORES] == [1, 2, 3, 4, 5, 6, 7]
    for wrong in (slice(0, 4, 2), slice(-1, None), -1):
        with pytest.raises(InvalidInput):
            SCORES[wrong]
    with pytest.raises(IndexError):
        SCORES[7]


def test_a_list_view_shows_a_ranking():
    class Top(ListView):
        paginate_by = 2
        allow_empty = True

        def get_queryset(self):
            return SCORES

    add(5, 6, 7)
    view = Top(template_name="unused")
    view.setup(RequestFactory().get("/?page=2"))
    context = view.get(view.request).context_data
    assert shown(context["page_obj"].object_list) == [(3, 5)]


def test_a_rolled_back_write_is_not_ranked():
    with transaction.atomic():
        GameScore.objects.create(score=5, region="asia")
        transaction.set_rollback(True)
    SCORES.caught_up()
    assert SCORES.count() == 0


def test_rows_are_of_the_callers_transaction_and_ranks_of_what_is_committed():
    (row,) = add(50)
    with transaction.atomic():
        GameScore.objects.update(score=80)
        (first,) = SCORES.top(9)
        assert (first.item.score, first.score) == (80, 50)
    SCORES.caught_up()
    assert SCORES.score(row) == 80


def test_catching_up_inside_a_transaction_is_refused_and_after_its_commit_it_works():
    with transaction.atomic():
        GameScore.objects.create(score=5, region="asia")
        with pytest.raises(Conflict, match=r"transaction.on_commit\(GameScore.leaderboard.caught_up\)"):
            SCORES.caught_up()
        transaction.on_commit(SCORES.caught_up)
    assert shown(SCORES.top(9)) == [(1, 5)]


async def test_async_views_have_a_twin_of_each_read():
    await GameScore.objects.acreate(score=5, region="asia")
    await SCORES.acaught_up()
    assert shown(await SCORES.atop(9)) == [(1, 5)]
    assert shown((await SCORES.apage()).object_list) == [(1, 5)]
    assert await SCORES.acount() == 1


def test_every_read_of_an_index_is_here_and_has_its_twin():
    def reads(cls: type, *, is_async: bool) -> set[str]:
        return {
            name
            for name, each in vars(cls).items()
            if not name.startswith("_") and inspect.iscoroutinefunction(each) is is_async and callable(each)
        }

    steps = {"index", "group", "period", "window", "using"}
    here = reads(ModelRanking, is_async=False) - steps
    assert {f"a{name}" for name in here} == reads(ModelRanking, is_async=True)
    assert reads(Ranking, is_async=True) - here == {"standing"}


def test_abstract_declarations_odd_tables_and_uuids():
    one, other = Solo.visible.bulk_create(
        Solo(id=UUID(int=number), points=points, day=date(2025, 10, 24))
        for number, points in [(1, 2**40), (2, 7)]
    )
    Solo.leaderboard.caught_up()
    ranking = Solo.leaderboard.group(date(2025, 10, 24))
    assert [each.item for each in ranking.top(9)] == [one, other]
    assert ranking.rank(str(other.pk)) == 2
    assert [type(each.item) for each in LoudSolo.leaderboard.top(9)] == [LoudSolo, LoudSolo]


def test_rows_that_the_default_manager_hides_are_left_out():
    for number, hidden in enumerate([True, False]):
        Solo(id=UUID(int=number + 1), points=9 - number, day=date(2025, 10, 24), is_hidden=hidden).save()
    Solo.leaderboard.caught_up()
    assert [(each.rank, each.item.points) for each in Solo.leaderboard.top(1)] == [(2, 8)]


def test_keys_of_several_columns():
    Round.objects.bulk_create(Round(season="a", number=n, points=n * 10) for n in (1, 2))
    Round.leaderboard.caught_up()
    assert [each.item.pk for each in Round.leaderboard.top(9)] == [("a", 2), ("a", 1)]
    assert Round.leaderboard.rank(("a", 1)) == Round.leaderboard.rank(Round.objects.get(number=1)) == 2


def test_a_leaderboard_is_of_the_class():
    with pytest.raises(AttributeError, match=r"write GameScore.leaderboard"):
        GameScore(score=1).leaderboard  # noqa: B018  # the access is refused


def test_laurels_opens_once_for_all_threads_and_again_after_it_is_closed():
    add(5)
    close()
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(opened())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, found))) == 1
    assert shown(SCORES.top(9)) == [(1, 5)]
