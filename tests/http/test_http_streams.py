"""What `/metrics` tells of the streams of activity, whichever process applies them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from laurels.activity.valkey_keys import DEAD, DEAD_CURSORS, HEARTBEATS, STREAMS

if TYPE_CHECKING:
    from httpx import AsyncClient

    from laurels.engine import Laurels


async def told(anybody: AsyncClient, metric: str) -> dict[str, float]:
    """By stream."""
    text = (await anybody.get("/metrics")).text
    found = re.findall(rf'^{metric}{{stream="(.+?)"}} (\S+)$', text, re.MULTILINE)
    return {stream: float(value) for stream, value in found}


async def test_metrics_tell_how_far_each_stream_is(anybody: AsyncClient, laurels: Laurels):
    try:
        await laurels.valkey.command("XADD", HEARTBEATS, "1000-0", "user_id", "nobody")
        before = await told(anybody, "lb_events_processed_total")
        assert before == dict.fromkeys(STREAMS, 0.0)
        lags = await told(anybody, "lb_backlog_lag_seconds")
        assert lags.pop(HEARTBEATS) > 0
        assert set(lags.values()) == {0.0}
        await laurels.activity.accrual.run_once()
        assert await told(anybody, "lb_events_processed_total") == {**before, HEARTBEATS: 1.0}
        assert await told(anybody, "lb_backlog_lag_seconds") == dict.fromkeys(STREAMS, 0.0)
        assert await told(anybody, "lb_events_late_total") == dict.fromkeys(STREAMS, 0.0)
        assert "\nlb_users_parked 0.0\n" in (await anybody.get("/metrics")).text
    finally:
        for key in (HEARTBEATS, DEAD, DEAD_CURSORS):
            await laurels.valkey.command("DEL", key)
