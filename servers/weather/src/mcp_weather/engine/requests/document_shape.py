"""What a document must have to be an answer at all.

It is looked at when the document comes: one that can't be read is not kept, so the last good one is served and the next
call asks the service again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast
from urllib.parse import parse_qs

from mcp_weather.engine.json_values import as_object, is_part_of_list
from mcp_weather.engine.requests.queries import is_open_meteo, service_of

__all__ = ["find_defect"]

_SERIES = ("hourly", "daily", "minutely_15")
_ALERT_LIST = "a list of alerts that can't be read"

Document = Mapping[str, Any]


def find_defect(key: str, document: Document) -> str | None:
    """Return what a service sent for `key` that is no answer, as the object of "sent"; None if it is one."""
    if is_open_meteo(key):
        return _find_open_meteo_defect(key, document)
    check = _CHECKS.get(service_of(key))
    if check is None:
        return None
    return check(key, document)


def _find_open_meteo_defect(key: str, document: Document) -> str | None:
    parameters = parse_qs(key.partition("?")[2])
    if "current" in parameters and not isinstance(document.get("current"), dict):
        return "an answer without present values"
    for name in _SERIES:
        if name not in parameters:
            continue
        times, *others = _values_of(as_object(document.get(name)))
        if not isinstance(times, list):
            return "an answer without its series"
        length = len(cast("list[Any]", times))
        if not all(isinstance(values, list) and len(cast("list[Any]", values)) == length for values in others):
            return "series of different lengths"
    return None


def _values_of(series: Document) -> list[Any]:
    """Return the times of a series, and then its variables."""
    return [series.get("time"), *(values for name, values in series.items() if name != "time")]


def _find_nws_defect(key: str, document: Document) -> str | None:
    if key.startswith("nws/points/"):
        grid = as_object(document.get("properties"))
        return None if {"gridId", "gridX", "gridY"} <= grid.keys() else "a point without its grid"
    if key.startswith("nws/alerts/"):
        return _find_alert_list_defect(document)
    return None


def _find_canada_defect(_: str, document: Document) -> str | None:
    return _find_alert_list_defect(document)


def _find_alert_list_defect(document: Document) -> str | None:
    """Return what is wrong with a GeoJSON list of alerts."""
    features = document.get("features")
    if document.get("type") != "FeatureCollection" or not isinstance(features, list):
        return _ALERT_LIST
    if not features and is_part_of_list(document):
        return "the list of alerts in parts"
    return None


def _find_meteoalarm_defect(_: str, document: Document) -> str | None:
    return None if isinstance(document.get("warnings"), list) else _ALERT_LIST


def _find_aviation_defect(_: str, document: Document) -> str | None:
    return None if isinstance(document.get("reports"), list) else "something that can't be read"


_CHECKS: Mapping[str, Callable[[str, Document], str | None]] = {
    "nws": _find_nws_defect,
    "canada": _find_canada_defect,
    "meteoalarm": _find_meteoalarm_defect,
    "aviation": _find_aviation_defect,
}
