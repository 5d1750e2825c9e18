"""The metrics of `/metrics`, in a registry of their own.

Labels have few values: a route is its template, a method one of HTTP's own. Each process counts for itself:
with `workers` above one, a scrape reads the worker that answers it.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    SummaryMetricFamily,
)
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prometheus_client.core import Metric

CONTENT_TYPE = CONTENT_TYPE_LATEST
REGISTRY = CollectorRegistry()

ProcessCollector(registry=REGISTRY)
PlatformCollector(registry=REGISTRY)
GCCollector(registry=REGISTRY)

# In seconds: from a cached read to the longest batch.
_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class RequestCount:
    """The count and the durations of one series of requests. Plain numbers: each update of the library's own
    series takes a lock, and a request would need three.
    """

    __slots__ = ("buckets", "seconds")

    def __init__(self) -> None:
        self.buckets = [0] * (len(_BOUNDS) + 1)
        self.seconds = 0.0

    def add(self, seconds: float) -> None:
        self.buckets[bisect_left(_BOUNDS, seconds)] += 1
        self.seconds += seconds


class _RequestCollector(Collector):
    def __init__(self) -> None:
        self._series: dict[tuple[str, str, int], RequestCount] = {}

    def series(self, method: str, route: str, status: int) -> RequestCount:
        labels = (method if method in _METHODS else "other", route, status)
        series = self._series.get(labels)
        if series is None:
            series = self._series[labels] = RequestCount()
        return series

    def collect(self) -> Iterable[Metric]:
        counts = CounterMetricFamily(
            "laurels_http_requests", "Answered requests.", labels=("method", "route", "status")
        )
        routes: dict[str, list[RequestCount]] = {}
        for (method, route, status), series in self._series.items():
            counts.add_metric((method, route, str(status)), sum(series.buckets))
            routes.setdefault(route, []).append(series)
        seconds = HistogramMetricFamily(
            "laurels_http_request_seconds", "Time from request to answer.", labels=("route",)
        )
        names = (*map(str, _BOUNDS), "+Inf")
        for route, of_route in routes.items():
            buckets = map(sum, zip(*(series.buckets for series in of_route), strict=True))
            below = zip(names, accumulate(buckets), strict=True)
            seconds.add_metric((route,), list(below), sum(series.seconds for series in of_route))
        return counts, seconds


_REQUESTS = _RequestCollector()
REGISTRY.register(_REQUESTS)

REFUSALS = Counter(
    "laurels_refusals",
    "Requests refused by a rate limit, or for an invalid key, token or signature.",
    ("reason",),
    registry=REGISTRY,
)

JOURNAL_AGE = Gauge(
    "laurels_journal_watermark_age_seconds", "Age of the oldest unarchived submission.", registry=REGISTRY
)
JOURNAL_CALLS = Gauge(
    "laurels_journal_backlog_calls", "Calls in the journals that are not archived yet.", registry=REGISTRY
)
JOURNAL_BYTES = Gauge(
    "laurels_journal_backlog_bytes", "Valkey's memory that unarchived journals take.", registry=REGISTRY
)
JOURNAL_ROWS = Counter("laurels_journal_rows", "Journal rows that this process archived.", registry=REGISTRY)
DEAD_LETTERS = Counter(
    "laurels_journal_dead_letters",
    "Journal entries that this process set aside as dead letters.",
    registry=REGISTRY,
)


class JobMetrics:
    """The runs of background jobs, read from PostgreSQL: the same in every process."""

    def __init__(self) -> None:
        self._runs = CounterMetricFamily(
            "laurels_job_runs", "Runs of the job, by outcome.", labels=("job", "outcome")
        )
        self._seconds = SummaryMetricFamily("laurels_job_seconds", "Duration of the runs.", labels=("job",))
        self._last_success = GaugeMetricFamily(
            "laurels_job_last_success_timestamp", "Unix time of the last success.", labels=("job",)
        )

    def add(
        self, job: str, *, succeeded: int, failed: int, seconds: float, last_success: float | None
    ) -> None:
        self._runs.add_metric((job, "succeeded"), succeeded)
        self._runs.add_metric((job, "failed"), failed)
        self._seconds.add_metric((job,), succeeded + failed, seconds)
        if last_success is not None:
            self._last_success.add_metric((job,), last_success)

    def families(self) -> Iterable[Metric]:
        return self._runs, self._seconds, self._last_success


class StreamMetrics:
    """The event streams of campuses, read from Valkey: the same in every process."""

    def __init__(self, users_parked: int = 0) -> None:
        self._processed = CounterMetricFamily(
            "lb_events_processed", "Events applied from the stream.", labels=("stream",)
        )
        self._late = CounterMetricFamily(
            "lb_events_late",
            "Effects on a user that came after the user's day had expired, and do not count.",
            labels=("stream",),
        )
        self._lag = GaugeMetricFamily(
            "lb_backlog_lag_seconds", "Age of the oldest unapplied event.", labels=("stream",)
        )
        self._parked = GaugeMetricFamily(
            "lb_users_parked", "Users whose events wait until their campus is known.", value=users_parked
        )

    def add(self, stream: str, *, processed: int, late: int, lag_seconds: float) -> None:
        self._processed.add_metric((stream,), processed)
        self._late.add_metric((stream,), late)
        self._lag.add_metric((stream,), lag_seconds)

    def families(self) -> Iterable[Metric]:
        return self._processed, self._late, self._lag, self._parked


class CampusMetrics:
    """The boards and badges of campuses, read from PostgreSQL: the same in every process."""

    def __init__(self) -> None:
        self.snapshots = CounterMetricFamily(
            "lb_snapshots", "Updates of a campus's tables.", labels=("period", "scope")
        )
        self.badges = CounterMetricFamily("lb_badges_awarded", "Awarded badges.", labels=("kind",))
        self._compute = HistogramMetricFamily(
            "lb_compute_seconds", "Time from changed counters to updated tables.", labels=("period",)
        )

    def add_compute(self, period: str, buckets: list[tuple[str, float]], seconds: float) -> None:
        """`buckets`: for each bound, the number of runs above the previous bound and up to this one."""
        counts = accumulate(count for _, count in buckets)
        below = zip((bound for bound, _ in buckets), counts, strict=True)
        self._compute.add_metric((period,), list(below), seconds)

    def families(self) -> Iterable[Metric]:
        return self.snapshots, self.badges, self._compute


class _NotedCollector(Collector):
    """Shows the figures that were noted last, of each kind."""

    def __init__(self) -> None:
        self.figures: dict[type, JobMetrics | StreamMetrics | CampusMetrics] = {}
        for figures in (JobMetrics(), StreamMetrics(), CampusMetrics()):
            self.figures[type(figures)] = figures

    def collect(self) -> Iterable[Metric]:
        return [family for figures in self.figures.values() for family in figures.families()]


_NOTED = _NotedCollector()
REGISTRY.register(_NOTED)


def note(figures: JobMetrics | StreamMetrics | CampusMetrics) -> None:
    """Replaces the figures of this kind."""
    _NOTED.figures[type(figures)] = figures


def request_series(method: str, route: str, status: int) -> RequestCount:
    """The series that counts requests with these labels."""
    return _REQUESTS.series(method, route, status)


def count_refusal(reason: str) -> None:
    """`reason`: the limit that was reached (key, player, address, failures), or `secret`: it is not valid."""
    REFUSALS.labels(reason).inc()


def note_backlog(calls: int, memory: int, age_seconds: float) -> None:
    JOURNAL_CALLS.set(calls)
    JOURNAL_BYTES.set(memory)
    JOURNAL_AGE.set(age_seconds)


def render() -> bytes:
    return generate_latest(REGISTRY)
