"""Respects Open-Meteo's free limits, in all server processes of a user together.

A call weighs more with many variables, long spans or old data (open-meteo/open-meteo discussion 438): one for each
ten variables and each two weeks, whichever way that multiplies.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any
from urllib.parse import parse_qs

import anyio.to_thread

from mcp_batteries.remote import Store

__all__ = ["LIMITS", "Budget", "weight"]

LIMITS = ((60.0, 600.0), (3600.0, 5000.0), (86_400.0, 10_000.0))
"""Seconds, and the weight of all calls in such a span."""


class Budget:
    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store, self._clock = store, clock

    async def take(self, key: str) -> float:
        """Count the call of `key`; seconds to wait if it would be beyond a limit, else 0."""
        now, heavy = self._clock(), weight(key)
        wait = 0.0

        def count(state: dict[str, Any]) -> dict[str, Any]:
            nonlocal wait
            spans = {str(int(seconds)): int(now // seconds) for seconds, _ in LIMITS}
            used = {span: _used(state, span, number) + heavy for span, number in spans.items()}
            for seconds, limit in LIMITS:
                if used[str(int(seconds))] > limit:
                    wait = max(wait, seconds - now % seconds)
            return state if wait else {span: [number, used[span]] for span, number in spans.items()}

        if self._store.blocks:
            await anyio.to_thread.run_sync(self._store.update, "open-meteo budget", count)
        else:
            self._store.update("open-meteo budget", count)
        return wait


def weight(key: str) -> float:
    """What the call of `key` counts."""
    asked = parse_qs(key.partition("?")[2])

    def first(name: str, default: str = "") -> str:
        return asked.get(name, [default])[0]

    models = max(1, len(first("models").split(",")))
    variables = sum(
        len(first(name).split(",")) for name in ("current", "hourly", "daily", "minutely_15") if first(name)
    )
    days = float(first("forecast_days", "7")) + float(first("past_days", "0"))
    if first("start_date"):
        days = float((date.fromisoformat(first("end_date")) - date.fromisoformat(first("start_date"))).days + 1)
    return max(1.0, variables * models / 10) * max(1.0, days / 14)


def _used(state: dict[str, Any], span: str, number: int) -> float:
    known: list[Any] = state.get(span) or [0, 0]
    return float(known[1]) if known[0] == number else 0.0
