from __future__ import annotations

from laurels import metrics


def test_a_request_is_counted_under_its_route_and_status():
    metrics.request_series("GET", "/counted/{board}", 200).add(0.004)
    metrics.request_series("BREW", "/counted/{board}", 405).add(0.1)
    text = metrics.render().decode()
    assert 'laurels_http_requests_total{method="GET",route="/counted/{board}",status="200"} 1.0' in text
    assert 'laurels_http_requests_total{method="other",route="/counted/{board}",status="405"} 1.0' in text
    assert 'laurels_http_request_seconds_bucket{le="0.005",route="/counted/{board}"} 1.0' in text
    assert 'laurels_http_request_seconds_count{route="/counted/{board}"} 2.0' in text


def test_metrics_include_the_process():
    assert b"process_resident_memory_bytes" in metrics.render()
