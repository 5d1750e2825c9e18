"""Tests of code that reads leaderboards: only committed rows are ranked, so a test must commit."""

from __future__ import annotations

from django.test import TransactionTestCase

from laurels.django.opened import close


class LeaderboardTestCase(TransactionTestCase):
    """Closes Laurels after the tests of the class, so that Django can drop the test's database."""

    @classmethod
    def tearDownClass(cls) -> None:
        super().tearDownClass()
        close()
