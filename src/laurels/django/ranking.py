"""`GameScore.leaderboard`: reads ranks from Valkey, and the rows with Django.

A ranking is a value: each step returns a new one. Ranks are read on the loop of this process's Laurels; rows
are read where the caller is, so that they come from its connection and its transaction. Each read has a twin
for async views: `atop` for `top`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Final, Generic, Literal, ParamSpec, TypeVar, overload

import msgspec
from asgiref.sync import sync_to_async
from django.core.paginator import Page, Paginator
from django.db import connections, models, router

from laurels.django.opened import opened
from laurels.errors import Conflict, InvalidInput
from laurels.index.results import Ranked

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
    from datetime import datetime

    from laurels.index.query import Ranking
    from laurels.index.results import Placing, Window

P = ParamSpec("P")
Row = TypeVar("Row", bound=models.Model)
Answer = TypeVar("Answer")

AT_ONCE: Final = 1000


def _async(
    read: Callable[Concatenate[Any, P], Answer],
) -> Callable[Concatenate[Any, P], Awaitable[Answer]]:
    """The twin of a read for async views; it runs where Django runs their queries."""

    @wraps(read)
    async def run(self: Any, *args: P.args, **kwargs: P.kwargs) -> Answer:
        return await sync_to_async(read)(self, *args, **kwargs)

    return run


@dataclass(frozen=True)
class ModelRanking(Generic[Row]):
    """One leaderboard of a model; by default of all rows in the current window."""

    model: type[Row]
    declarer: type[models.Model]
    steps: tuple[Callable[[Ranking[Any]], Ranking[Any]], ...] = ()
    which: str | None = None
    rows: models.QuerySet[Row] | None = None

    def index(self, label: str) -> ModelRanking[Row]:
        """Another leaderboard of the model, by its label or its score."""
        return replace(self, which=label)

    def group(self, *values: object) -> ModelRanking[Row]:
        """One group, by its value at each level: `group("asia")`, or `group("asia", "tokyo")` within it."""
        texts = [_plain(value) for value in values]
        return self._with(lambda ranking: ranking.group(*texts))

    def period(self, name: str) -> ModelRanking[Row]:
        """Another of the declared windows: `period("weekly")`. By default the first."""
        return self._with(lambda ranking: ranking.period(name))

    def window(self, window: Window | datetime | int | str) -> ModelRanking[Row]:
        """Another than the current one: an item of `windows()`, the one that contains a moment, or its id:
        `19750`, or `"2025-w43"` of a calendar.
        """
        return self._with(lambda ranking: ranking.window(window))

    def using(self, rows: models.QuerySet[Row]) -> ModelRanking[Row]:
        """Takes the rows from this queryset: `using(GameScore.objects.select_related("player"))`. Entries
        that it does not have are left out.
        """
        return replace(self, rows=rows)

    def top(self, k: int) -> list[Ranked[Row]]:
        """The best k rows, best first. Deleted rows that are still ranked are left out."""
        return self._listed(k, "top")

    def bottom(self, k: int) -> list[Ranked[Row]]:
        """The last k rows, last first."""
        return self._listed(k, "bottom")

    def around(self, key: object, above: int = 5, below: int | None = None) -> list[Ranked[Row]]:
        """A row and its neighbours, as many below as above unless said; empty when it has no entry."""
        given = self._key(key)
        return self._loaded(self._run(lambda ranking: ranking.around(given, above, below)))

    def between(self, low: int, high: int, limit: int = 100) -> list[Ranked[Row]]:
        """The rows with scores from `low` to `high`, best first, up to `limit`."""
        return self._loaded(self._run(lambda ranking: ranking.between(low, high, limit)))

    def page(self, number: int = 1, size: int = 100) -> Page[Ranked[Row]]:
        """A page of Django: `has_next()`, `next_page_number()`. A number past the end is the last page."""
        return Paginator(self, size).get_page(number)

    def rank(self, key: object) -> int | None:
        """The rank of a row or of its primary key, or of a member; None when it has no entry."""
        given = self._key(key)
        return self._run(lambda ranking: ranking.rank(given))

    def rank_of_score(self, score: int) -> int:
        """The rank that this score has or would have: 1 + the number of strictly better entries."""
        return self._run(lambda ranking: ranking.rank_of_score(score))

    def dense_rank(self, key: object) -> int | None:
        """1 + the number of distinct better scores; None when the row has no entry. Needs `dense=True`."""
        given = self._key(key)
        return self._run(lambda ranking: ranking.dense_rank(given))

    def score(self, key: object) -> int | None:
        given = self._key(key)
        return self._run(lambda ranking: ranking.score(given))

    def percentile(self, p: float) -> int | None:
        """The score that a share `p` of the entries do not exceed: at 1 the best. None without entries."""
        return self._run(lambda ranking: ranking.percentile(p))

    def count(self) -> int:
        return self._run(lambda ranking: ranking.count())

    def windows(self) -> list[Window]:
        """The current window, then the earlier ones with entries that can be asked for, newest first."""
        return self._run(lambda ranking: ranking.windows())

    def entries(self, k: int, start: Literal["top", "bottom"] = "top", *, skip: int = 0) -> list[Placing]:
        """Keys, scores and ranks without rows: k of them after skipping `skip`. Asks no database."""
        return self._run(lambda ranking: ranking.entries(k, start, skip=skip))

    def among(self, keys: Iterable[object]) -> list[Placing]:
        """The entries of these rows or keys, best first, each with its rank in the whole ranking."""
        given = [self._key(key) for key in keys]
        return self._run(lambda ranking: ranking.among(given))

    def caught_up(self) -> None:
        """Returns when everything committed before the call is ranked: `transaction.on_commit` may call it.

        Raises `Conflict` inside a transaction, whose own changes are not committed yet.
        """
        alias = self._alias
        if connections[alias].in_atomic_block:
            raise Conflict(
                f"caught_up was called inside a transaction on {alias!r}, whose changes are not committed "
                f"yet: write transaction.on_commit({self.declarer.__name__}.leaderboard.caught_up); in a "
                "test, use laurels.django.test.LeaderboardTestCase"
            )
        opened().caught_up(alias, self.declarer)

    atop = _async(top)
    abottom = _async(bottom)
    aaround = _async(around)
    abetween = _async(between)
    apage = _async(page)
    arank = _async(rank)
    arank_of_score = _async(rank_of_score)
    adense_rank = _async(dense_rank)
    ascore = _async(score)
    apercentile = _async(percentile)
    acount = _async(count)
    awindows = _async(windows)
    aentries = _async(entries)
    aamong = _async(among)
    acaught_up = _async(caught_up)

    def __len__(self) -> int:
        return self.count()

    def __iter__(self) -> Iterator[Ranked[Row]]:
        """All rows, best first."""
        first = 0
        while found := self.entries(AT_ONCE, skip=first):
            yield from self._placed(found)
            first += len(found)

    @overload
    def __getitem__(self, wanted: int) -> Ranked[Row]: ...
    @overload
    def __getitem__(self, wanted: slice) -> list[Ranked[Row]]: ...
    def __getitem__(self, wanted: int | slice) -> Ranked[Row] | list[Ranked[Row]]:
        """The entry at a place, or those of a slice without a step: `Paginator` and `ListView` need it."""
        if isinstance(wanted, int):
            if wanted < 0:
                raise InvalidInput.at("index", "cannot be negative: use bottom()")
            return self[wanted : wanted + 1][0]
        first, last = wanted.start or 0, self.count() if wanted.stop is None else wanted.stop
        if wanted.step is not None or first < 0 or last < 0:
            raise InvalidInput.at("slice", "must be from:to, both from 0 on")
        return self._placed(self.entries(max(0, last - first), skip=first))

    def _with(self, step: Callable[[Ranking[Any]], Ranking[Any]]) -> ModelRanking[Row]:
        return replace(self, steps=(*self.steps, step))

    @property
    def _alias(self) -> str:
        return router.db_for_write(self.declarer)

    def _run(self, ask: Callable[[Ranking[Any]], Coroutine[Any, Any, Answer]]) -> Answer:
        here = opened()
        return here.run(ask(self._ranking()))

    def _ranking(self) -> Ranking[Any]:
        ranking = opened().ranking(self._alias, self.declarer, self.which)
        for step in self.steps:
            ranking = step(ranking)
        return ranking

    def _key(self, key: object) -> object:
        """What the index ranks: a member if it has one, or else a primary key."""
        if not isinstance(key, models.Model):
            return key
        member = self._ranking().declared.index.member
        if member is None or not isinstance(key, self.declarer):
            return key.pk
        field: Any = self.declarer._meta.get_field(member)
        return getattr(key, field.attname)

    def _listed(self, k: int, start: Literal["top", "bottom"]) -> list[Ranked[Row]]:
        found: list[Ranked[Row]] = []
        read = 0
        while True:
            wanted = k - len(found)
            placings = self.entries(wanted, start, skip=read)
            read += len(placings)
            found += self._placed(placings)
            if len(placings) < wanted or len(found) >= k:
                return found

    def _placed(self, placings: Iterable[Placing]) -> list[Ranked[Row]]:
        """With the rows that make these entries."""
        ranked = [Ranked(each.key, each.score, each.rank) for each in placings]
        ranking = self._ranking()
        if ranked and ranking.declared.member is not None:
            made_by = opened().made_by(self._alias, self.declarer, ranking, [each.item for each in ranked])
            ranked = [
                msgspec.structs.replace(each, item=made_by[each.item])
                for each in ranked
                if each.item in made_by
            ]
        return self._loaded(ranked)

    def _loaded(self, ranked: list[Ranked[Any]]) -> list[Ranked[Row]]:
        """With rows in place of their keys, in one query."""
        if not ranked:
            return []
        rows = self.model._default_manager.using(self._alias) if self.rows is None else self.rows
        found = {row.pk: row for row in rows.filter(pk__in=[each.item for each in ranked])}
        return [msgspec.structs.replace(each, item=found[each.item]) for each in ranked if each.item in found]


def _plain(value: object) -> object:
    """What a field stores: the key of a row, the value of a choice."""
    if isinstance(value, models.Model):
        return value.pk
    return value.value if isinstance(value, Enum) else value
