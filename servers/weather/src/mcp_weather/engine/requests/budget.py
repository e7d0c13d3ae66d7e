"""Respects Open-Meteo's free limits, in all server processes of a user together.

A call weighs more with many variables, long spans or old data (open-meteo/open-meteo discussion 438): one for each
ten variables and each two weeks, whichever way that multiplies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Any
from urllib.parse import parse_qs

import anyio.to_thread

from mcp_batteries.remote import Store

__all__ = ["LIMITS", "Budget", "compute_weight"]

_STORE_KEY = "open-meteo budget"
_VARIABLE_PARAMETERS = ("current", "hourly", "daily", "minutely_15")
_VARIABLES_OF_ONE = 10
_DAYS_OF_ONE = 14
_DEFAULT_FORECAST_DAYS = "7"


@dataclass(frozen=True)
class Limit:
    """The weight that all calls in a span of `seconds` may have."""

    seconds: float
    max_weight: float

    @property
    def state_key(self) -> str:
        """The key of its span in the state that is stored."""
        return str(int(self.seconds))

    def span_number(self, now: float) -> int:
        """Return which span it is, counted from the epoch."""
        return int(now // self.seconds)

    def used_weight(self, state: dict[str, Any], now: float) -> float:
        """Return the weight of the calls in the span that it is."""
        number, weight = state.get(self.state_key) or [0, 0]
        if number != self.span_number(now):
            return 0.0
        return float(weight)


LIMITS = (Limit(60.0, 600.0), Limit(3600.0, 5000.0), Limit(86_400.0, 10_000.0))


class Budget:
    """Counts calls in a store that all processes share."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock

    async def spend(self, key: str) -> float:
        """Count the call of `key`; return the seconds to wait if it would be beyond a limit, else 0."""
        now = self._clock()
        weight = compute_weight(key)
        wait = 0.0

        def add_weight(state: dict[str, Any]) -> dict[str, Any]:
            nonlocal wait
            new_state: dict[str, Any] = {}
            for limit in LIMITS:
                used = limit.used_weight(state, now) + weight
                if used > limit.max_weight:
                    wait = max(wait, limit.seconds - now % limit.seconds)
                new_state[limit.state_key] = [limit.span_number(now), used]
            if wait:
                return state
            return new_state

        if self._store.blocks:
            await anyio.to_thread.run_sync(self._store.update, _STORE_KEY, add_weight)
        else:
            self._store.update(_STORE_KEY, add_weight)
        return wait


def compute_weight(key: str) -> float:
    """Return what the call of `key` counts."""
    parameters = {name: values[0] for name, values in parse_qs(key.partition("?")[2]).items()}
    models = len(parameters.get("models", "").split(","))
    variables = 0
    for name in _VARIABLE_PARAMETERS:
        if name in parameters:
            variables += len(parameters[name].split(","))
    variables_weight = max(1.0, variables * models / _VARIABLES_OF_ONE)
    return variables_weight * max(1.0, _count_days(parameters) / _DAYS_OF_ONE)


def _count_days(parameters: dict[str, str]) -> float:
    if "start_date" in parameters:
        start = date.fromisoformat(parameters["start_date"])
        end = date.fromisoformat(parameters["end_date"])
        return float((end - start).days + 1)
    forecast_days = float(parameters.get("forecast_days", _DEFAULT_FORECAST_DAYS))
    return forecast_days + float(parameters.get("past_days", "0"))
