"""How long a service has nothing newer: for so long an answer is not asked for again."""

from __future__ import annotations

import re
from typing import Any

from mcp_weather.engine.json_values import as_object
from mcp_weather.engine.requests.queries import CAP_SERVICES, is_cap_index
from mcp_weather.engine.requests.service_response import ServiceResponse

__all__ = ["refresh_interval"]

_QUARTER_HOUR = 900.0
_HOUR = 3600.0
_DAY = 86_400.0

# Seconds for which a service is known to have nothing newer; forecasts and the Weather Service say it themselves.
_INTERVALS = {
    "air": _HOUR, "marine": _HOUR, "flood": 6 * _HOUR, "archive": 6 * _HOUR, "geocoding": 30 * _DAY, "canada": 120.0,
    "meteoalarm": 300.0, "aviation": 300.0, "ensemble": _HOUR, "metservice": 120.0, "wmo": 300.0,
}  # fmt: skip
_MIN_NWS_INTERVAL = 30.0
# "None in effect" may be repeated for so many seconds, whatever a proxy says of the answer's age.
_MAX_ALERTS_INTERVAL = 120.0

_MAX_AGE = re.compile(r"(?:^|[ ,])(?:s-maxage|max-age)=(\d+)")


def refresh_interval(
    response: ServiceResponse, document: dict[str, Any], *, now: float, max_interval: int | None
) -> float:
    """Return the seconds until there can be something new.

    Args:
        document: the content of the response; empty if it has none.
        max_interval: the most seconds between two checks, if somebody has set them.
    """
    if response.service == "geocoding":
        return _INTERVALS["geocoding"]
    if response.service in CAP_SERVICES and not is_cap_index(response.key):
        return _DAY
    if response.service == "nws":
        interval = _nws_interval(response)
        if "/points/" in response.key or response.key.endswith("/stations"):
            return max(interval, _DAY)
    elif response.service == "forecast":
        interval = _seconds_to_next_step(_forecast_step(response.key, document), now)
    else:
        interval = _INTERVALS[response.service]
    if max_interval:
        return min(interval, float(max_interval))
    return interval


def _nws_interval(response: ServiceResponse) -> float:
    """Return the seconds that the Weather Service says of an answer, within limits."""
    interval = _MIN_NWS_INTERVAL
    if match := _MAX_AGE.search(response.headers.get("cache-control", "")):
        interval = max(interval, float(match[1]))
    if "/alerts/" in response.key:
        return min(interval, _MAX_ALERTS_INTERVAL)
    return interval


def _forecast_step(key: str, document: dict[str, Any]) -> float:
    """Return the seconds between two steps of a forecast."""
    if "current=" in key:
        interval = as_object(document.get("current")).get("interval")
        if isinstance(interval, int | float) and 0 < interval <= _DAY:
            return float(interval)
        return _QUARTER_HOUR
    if "minutely_15=" in key:
        return _QUARTER_HOUR
    return _HOUR


def _seconds_to_next_step(step: float, now: float) -> float:
    """Return the seconds until a second after the next full step."""
    return step - now % step + 1
