from laurels.django.test import LeaderboardTestCase
from scores.models import GameScore


class TopTest(LeaderboardTestCase):
    def add(self, player: str, region: str, score: int) -> int:
        posted = {"player": player, "region": region, "score": score}
        return self.client.post("/scores", posted).json()["id"]

    def test_the_page_shows_the_best_of_today(self):
        self.add("ada", "asia", 1200)
        self.add("eve", "europe", 1500)
        page = self.client.get("/").content.decode()
        assert page.index("eve") < page.index("ada")
        assert "eve" not in self.client.get("/?region=asia").content.decode()

    def test_a_player_sees_the_rank_of_the_best_score(self):
        self.add("eve", "europe", 1500)
        self.add("ada", "asia", 900)
        score = GameScore.objects.get(pk=self.add("ada", "asia", 1200))
        assert self.client.get(f"/players/{score.player_id}").json() == {"rank": 2, "score": 1200}

    def test_a_refused_request_leaves_nothing_in_the_ranking(self):
        with self.assertRaises(ValueError):
            self.client.post("/scores", {"player": "ada", "region": "asia", "score": "many"})
        GameScore.leaderboard.caught_up()
        assert GameScore.leaderboard.count() == 0
