"""What `/metrics` tells, in a registry of its own.

Labels are bounded: a route is its template, a method one that HTTP names. Each process counts for itself, so
with `workers` above one a scrape sees the worker that answers it.
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

# From a cached read to the longest batch, in seconds.
_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class RequestCount:
    """How many requests were answered alike, and in what time; in plain numbers, since the library's own
    series take a lock, three times a request.
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
        self._answered: dict[tuple[str, str, int], RequestCount] = {}

    def alike(self, method: str, route: str, status: int) -> RequestCount:
        series = (method if method in _METHODS else "other", route, status)
        answered = self._answered.get(series)
        if answered is None:
            answered = self._answered[series] = RequestCount()
        return answered

    def collect(self) -> Iterable[Metric]:
        counts = CounterMetricFamily(
            "laurels_http_requests", "Answered requests.", labels=("method", "route", "status")
        )
        routes: dict[str, list[RequestCount]] = {}
        for (method, route, status), answered in self._answered.items():
            counts.add_metric((method, route, str(status)), sum(answered.buckets))
            routes.setdefault(route, []).append(answered)
        seconds = HistogramMetricFamily(
            "laurels_http_request_seconds", "Time from request to answer.", labels=("route",)
        )
        names = (*map(str, _BOUNDS), "+Inf")
        for route, those in routes.items():
            buckets = map(sum, zip(*(answered.buckets for answered in those), strict=True))
            below = zip(names, accumulate(buckets), strict=True)
            seconds.add_metric((route,), list(below), sum(answered.seconds for answered in those))
        return counts, seconds


_REQUESTS = _RequestCollector()
REGISTRY.register(_REQUESTS)

REFUSALS = Counter(
    "laurels_refusals",
    "Requests refused by a rate limit, or for a key, token or signature that is not good.",
    ("reason",),
    registry=REGISTRY,
)

JOURNAL_AGE = Gauge(
    "laurels_journal_watermark_age_seconds",
    "How long the oldest submission that is not archived has waited.",
    registry=REGISTRY,
)
JOURNAL_CALLS = Gauge("laurels_journal_backlog_calls", "Calls that wait to be archived.", registry=REGISTRY)
JOURNAL_BYTES = Gauge(
    "laurels_journal_backlog_bytes", "Memory of Valkey that waits to be archived.", registry=REGISTRY
)
JOURNAL_ROWS = Counter("laurels_journal_rows", "Rows that this process archived.", registry=REGISTRY)
DEAD_LETTERS = Counter(
    "laurels_journal_dead_letters", "Entries that this process gave up archiving.", registry=REGISTRY
)


class JobMetrics:
    """What PostgreSQL knows of the jobs: whoever runs them, every process tells the same."""

    def __init__(self) -> None:
        self.runs = CounterMetricFamily("laurels_job_runs", "Runs by outcome.", labels=("job", "outcome"))
        self.seconds = SummaryMetricFamily("laurels_job_seconds", "How long runs took.", labels=("job",))
        self.last_success = GaugeMetricFamily(
            "laurels_job_last_success_timestamp", "When it last succeeded; Unix time.", labels=("job",)
        )

    def add(
        self, job: str, *, succeeded: int, failed: int, seconds: float, last_success: float | None
    ) -> None:
        self.runs.add_metric((job, "succeeded"), succeeded)
        self.runs.add_metric((job, "failed"), failed)
        self.seconds.add_metric((job,), succeeded + failed, seconds)
        if last_success is not None:
            self.last_success.add_metric((job,), last_success)


class _JobCollector(Collector):
    noted = JobMetrics()

    def collect(self) -> Iterable[Metric]:
        return self.noted.runs, self.noted.seconds, self.noted.last_success


_JOBS = _JobCollector()
REGISTRY.register(_JOBS)


class StreamMetrics:
    """What Valkey knows of the streams of activity: whoever applies them, every process tells the same."""

    def __init__(self, users_parked: int = 0) -> None:
        self._processed = CounterMetricFamily(
            "lb_events_processed", "Events of a stream that were applied.", labels=("stream",)
        )
        self._late = CounterMetricFamily(
            "lb_events_late",
            "Effects on a user that came when their day had expired, and do not count.",
            labels=("stream",),
        )
        self._lag = GaugeMetricFamily(
            "lb_backlog_lag_seconds", "Age of the oldest event that waits.", labels=("stream",)
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


class _StreamCollector(Collector):
    noted = StreamMetrics()

    def collect(self) -> Iterable[Metric]:
        return self.noted.families()


_STREAMS = _StreamCollector()
REGISTRY.register(_STREAMS)


class CampusMetrics:
    """What PostgreSQL knows of the campuses' boards and badges: every process tells the same."""

    def __init__(self) -> None:
        self.snapshots = CounterMetricFamily(
            "lb_snapshots", "Tables of campuses that were brought up to date.", labels=("period", "scope")
        )
        self.badges = CounterMetricFamily("lb_badges_awarded", "Badges that were awarded.", labels=("kind",))
        self._compute = HistogramMetricFamily(
            "lb_compute_seconds",
            "Time from changed counters to tables that are up to date.",
            labels=("period",),
        )

    def add_compute(self, period: str, buckets: list[tuple[str, float]], seconds: float) -> None:
        """`buckets`: how many runs took no longer than each bound, and longer than the one before."""
        counts = accumulate(count for _, count in buckets)
        below = zip((bound for bound, _ in buckets), counts, strict=True)
        self._compute.add_metric((period,), list(below), seconds)

    def families(self) -> Iterable[Metric]:
        return self.snapshots, self.badges, self._compute


class _CampusCollector(Collector):
    noted = CampusMetrics()

    def collect(self) -> Iterable[Metric]:
        return self.noted.families()


_CAMPUSES = _CampusCollector()
REGISTRY.register(_CAMPUSES)


def answered_alike(method: str, route: str, status: int) -> RequestCount:
    """What counts the requests that are answered with this status."""
    return _REQUESTS.alike(method, route, status)


def count_refusal(reason: str) -> None:
    """By the limit that was reached (key, player, address, failures), or for a secret that is not good."""
    REFUSALS.labels(reason).inc()


def note_backlog(calls: int, memory: int, age_seconds: float) -> None:
    JOURNAL_CALLS.set(calls)
    JOURNAL_BYTES.set(memory)
    JOURNAL_AGE.set(age_seconds)


def note_jobs(jobs: JobMetrics) -> None:
    """These take the place of what was noted before."""
    _JOBS.noted = jobs


def note_streams(streams: StreamMetrics) -> None:
    """As `note_jobs`."""
    _STREAMS.noted = streams


def note_campuses(campuses: CampusMetrics) -> None:
    """As `note_jobs`."""
    _CAMPUSES.noted = campuses


def render() -> bytes:
    return generate_latest(REGISTRY)
