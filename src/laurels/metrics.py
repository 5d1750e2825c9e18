"""What `/metrics` tells, in a registry of its own.

Labels are bounded: a route is its template, a method one that HTTP names, a board one that is defined. Each
process counts for itself, so with `workers` above one a scrape sees the worker that answers it.
"""

from __future__ import annotations

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)

CONTENT_TYPE = CONTENT_TYPE_LATEST
REGISTRY = CollectorRegistry()

ProcessCollector(registry=REGISTRY)
PlatformCollector(registry=REGISTRY)
GCCollector(registry=REGISTRY)

HTTP_REQUESTS = Counter(
    "laurels_http_requests", "Answered requests.", ("method", "route", "status"), registry=REGISTRY
)
HTTP_SECONDS = Histogram(
    "laurels_http_request_seconds",
    "Time from request to answer.",
    ("route",),
    # From a cached read to the longest batch.
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
    registry=REGISTRY,
)
SUBMISSIONS = Counter(
    "laurels_submissions",
    "Submissions by outcome: applied, unchanged, repeated or rejected.",
    ("project", "board", "outcome"),
    registry=REGISTRY,
)

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def count_request(method: str, route: str, status: int, seconds: float) -> None:
    HTTP_REQUESTS.labels(method if method in _METHODS else "other", route, str(status)).inc()
    HTTP_SECONDS.labels(route).observe(seconds)


def forget_board(project: str, board: str) -> None:
    """A dropped board leaves no series behind."""
    SUBMISSIONS.remove_by_labels({"project": project, "board": board})


def render() -> bytes:
    return generate_latest(REGISTRY)
