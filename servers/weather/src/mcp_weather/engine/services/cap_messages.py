"""Messages of the Common Alerting Protocol 1.2, in JSON of its own names: which of them are in force at a place.

An area is a code, a polygon, a circle, or a name only; where the name is all there is, the warning is told with that
doubt.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any, cast

from mcp_weather.engine.computed.timestamps import format_local, parse_timestamp
from mcp_weather.engine.json_values import as_objects
from mcp_weather.engine.services.cap import find_superseded, is_all_clear, is_warning, read_text
from mcp_weather.engine.services.meteoalarm_areas import area_contains, ring_contains
from mcp_weather.models import Alert
from mcp_weather.policy.place import Place

__all__ = ["read_messages"]

# Some services send the awareness level green to say that there is no warning.
_NO_WARNING_LEVEL = "1"
# A place counts as inside within so many kilometres of a circle, so that no warning is missed by rounding.
_CIRCLE_MARGIN_KM = 2.0
_DOUBTFUL_AREA = " (not known whether the place is in it)"


def read_messages(
    messages: Sequence[dict[str, Any]], place: Place, zone: tzinfo, language: str, *, now: datetime | None = None
) -> list[Alert]:
    """Return the warnings for `place`, in `language` if they are told in it, else in English, else as they come.

    Args:
        now: what expired by then is left out; without it, the list that the messages are from decides alone.
    """
    superseded = find_superseded(messages)
    alerts: list[Alert] = []
    for number, message in enumerate(messages):
        if is_warning(message) and message.get("identifier") not in superseded:
            identifier = read_text(message.get("identifier")) or f"without an identifier {number}"
            alerts += _read_message(message, identifier, place, zone, language, now)
    return alerts


def _read_message(
    message: dict[str, Any], identifier: str, place: Place, zone: tzinfo, language: str, now: datetime | None
) -> list[Alert]:
    """Return the warnings of one message that may concern `place`."""
    alerts: list[Alert] = []
    infos = as_objects(message.get("info")) or [{}]
    for number, info in enumerate(_select_language(infos, language)):
        if _is_all_clear(info) or _has_expired(info, now):
            continue
        area = _find_area(info, place)
        if area is None:
            continue
        alert_id = f"{identifier} {number}" if number else identifier
        alerts.append(_make_alert(info, alert_id, area, zone))
    return alerts


@dataclass(frozen=True)
class _Area:
    """An area of a warning.

    Attributes:
        contains_place: None if it is not known whether the place is in it.
    """

    name: str | None
    contains_place: bool | None

    def describe(self) -> str:
        """Return its name, with a doubt if it is not known whether the place is in it."""
        name = self.name or "area without a name"
        if self.contains_place:
            return name
        return name + _DOUBTFUL_AREA


def _make_alert(info: dict[str, Any], alert_id: str, area: _Area, zone: tzinfo) -> Alert:
    return Alert(
        id=alert_id,
        event=read_text(info.get("event")) or "Warning that can't be read",
        severity=read_text(info.get("severity")),
        urgency=read_text(info.get("urgency")),
        headline=read_text(info.get("headline")),
        area=area.describe(),
        onset=format_local(info.get("onset") or info.get("effective"), zone),
        ends=format_local(info.get("expires"), zone),
        sender=read_text(info.get("senderName")),
        description=read_text(info.get("description")),
        instruction=read_text(info.get("instruction")),
    )


def _select_language(infos: Sequence[dict[str, Any]], language: str) -> list[dict[str, Any]]:
    """Return the infos in one language: the same warning is told in several."""
    languages = [str(info.get("language") or "")[:2].lower() for info in infos]
    chosen = languages[0]
    for candidate in (language, "en"):
        if candidate in languages:
            chosen = candidate
            break
    return [info for info, info_language in zip(infos, languages, strict=True) if info_language == chosen]


def _is_all_clear(info: dict[str, Any]) -> bool:
    """Return whether it says that there is no danger."""
    return _awareness_level(info) == _NO_WARNING_LEVEL or is_all_clear(info.get("responseType"))


def _has_expired(info: dict[str, Any], now: datetime | None) -> bool:
    """Return whether a warning says that it ended by `now`; one that does not say so has not."""
    expires = parse_timestamp(info.get("expires"))
    return now is not None and expires is not None and expires <= now


def _awareness_level(info: dict[str, Any]) -> str | None:
    for parameter in as_objects(info.get("parameter")):
        if parameter.get("valueName") == "awareness_level":
            return str(parameter.get("value")).partition(";")[0].strip()
    return None


def _find_area(info: dict[str, Any], place: Place) -> _Area | None:
    """Return the area that `place` lies in, else the first that it may lie in; None if it certainly lies in none."""
    areas = [_read_area(area, place) for area in as_objects(info.get("area"))]
    if not areas:
        return _Area(None, None)
    for contains_place in (True, None):
        for area in areas:
            if area.contains_place is contains_place:
                return area
    return None


def _read_area(area: dict[str, Any], place: Place) -> _Area:
    return _Area(read_text(area.get("areaDesc")), _area_contains(area, place))


def _area_contains(area: dict[str, Any], place: Place) -> bool | None:
    """Return whether `place` lies in `area`; None if that can't be told."""
    answers = [area_contains(code, place.latitude, place.longitude) for code in _list_codes(area)]
    answers += [_polygon_contains(polygon, place) for polygon in _list_shapes(area, "polygon")]
    answers += [_circle_contains(circle, place) for circle in _list_shapes(area, "circle")]
    if any(answers):
        return True
    if not answers or None in answers:
        return None
    return False


def _list_codes(area: dict[str, Any]) -> list[str]:
    """Return the EMMA_IDs of an area."""
    geocodes = as_objects(area.get("geocode"))
    return [str(geocode.get("value")) for geocode in geocodes if geocode.get("valueName") == "EMMA_ID"]


def _list_shapes(area: dict[str, Any], kind: str) -> list[str]:
    """Return the polygons or circles of an area, which may have one or a list of them."""
    shapes: Any = area.get(kind)
    if not shapes:
        return []
    if not isinstance(shapes, list):
        return [str(shapes)]
    return [str(shape) for shape in cast("list[Any]", shapes)]


def _polygon_contains(polygon: str, place: Place) -> bool | None:
    """Return whether `place` lies in `polygon`, which is CAP's pairs of latitude and longitude; None if it is none."""
    try:
        corners = [_parse_corner(pair) for pair in polygon.split()]
    except ValueError:
        return None
    if len(corners) < 3:
        return None
    return ring_contains(corners, place.latitude, place.longitude)


def _circle_contains(circle: str, place: Place) -> bool | None:
    """Return whether `place` lies in `circle`, which is CAP's centre and a radius in km; None if it is none."""
    try:
        centre, radius = circle.split()
        longitude, latitude = _parse_corner(centre)
        radius_km = float(radius)
    except ValueError:
        return None
    if not math.isfinite(radius_km):
        return None
    return place.distance_km(latitude, longitude) <= radius_km + _CIRCLE_MARGIN_KM


def _parse_corner(pair: str) -> tuple[float, float]:
    """Return longitude and latitude of CAP's `latitude,longitude`.

    Raises:
        ValueError: it is no such pair.
    """
    latitude, longitude = [float(number) for number in pair.split(",")]
    if not (math.isfinite(latitude) and math.isfinite(longitude)):
        raise ValueError(pair)
    return longitude, latitude
