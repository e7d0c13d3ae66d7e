"""MeteoAlarm: warnings of 38 national weather services in CAP 1.2, one list for each country.

The lists are JSON of CAP's own names. An area is a code, a polygon, or a name only; where the name is all there is, the
warning is told with that doubt.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo
from typing import Any, cast

from mcp_batteries.errors import Unavailable
from mcp_weather.engine.services.cap import NOT_ACTUAL, local, objects, replaced, words
from mcp_weather.engine.services.meteoalarm_areas import covers, inside
from mcp_weather.models import Alert
from mcp_weather.policy import Place

__all__ = ["COUNTRIES", "METEOALARM", "alerts"]

METEOALARM = ("MeteoAlarm (EUMETNET)", "CC BY 4.0")

COUNTRIES = {
    "AT": "austria", "BA": "bosnia-herzegovina", "BE": "belgium", "BG": "bulgaria", "CH": "switzerland", "CY": "cyprus",
    "CZ": "czechia", "DE": "germany", "DK": "denmark", "EE": "estonia", "ES": "spain", "FI": "finland", "FR": "france",
    "GB": "united-kingdom", "GR": "greece", "HR": "croatia", "HU": "hungary", "IE": "ireland", "IL": "israel",
    "IS": "iceland", "IT": "italy", "LT": "lithuania", "LU": "luxembourg", "LV": "latvia", "MD": "moldova",
    "ME": "montenegro", "MK": "republic-of-north-macedonia", "MT": "malta", "NL": "netherlands", "NO": "norway",
    "PL": "poland", "PT": "portugal", "RO": "romania", "RS": "serbia", "SE": "sweden", "SI": "slovenia",
    "SK": "slovakia", "UA": "ukraine",
}  # fmt: skip
"""The name of each country's list, by ISO 3166-1 code."""

_NO_WARNING = "1"
"""The awareness level green: some services send it to say that there is no warning."""
_DOUBT = " (not known whether the place is in it)"


def alerts(document: dict[str, Any], place: Place, zone: tzinfo, language: str) -> list[Alert]:
    """The warnings for `place`, in `language` if they are told in it, else in English, else as they come.

    Raises:
        Unavailable: it is not such a list.
    """
    if not isinstance(document.get("warnings"), list):
        raise Unavailable("MeteoAlarm sent a list of warnings that can't be read.", "Try again soon.")
    found: list[Alert] = []
    messages = [objects([warning.get("alert")])[0] for warning in objects(document["warnings"])]
    over = replaced(messages)
    for number, message in enumerate(messages):
        if message.get("status") in NOT_ACTUAL or message.get("msgType") in ("Cancel", "Error"):
            continue
        if message.get("identifier") in over:
            continue
        name = words(message.get("identifier")) or f"without an identifier {number}"
        told = objects(message.get("info")) or [{}]
        for part, info in enumerate(_in_language(told, language)):
            if _level(info) == _NO_WARNING or info.get("responseType") in ("AllClear", ["AllClear"]):
                continue
            areas = objects(info.get("area"))
            here = [(area, _covered(area, place)) for area in areas]
            if here and all(covered is False for _, covered in here):
                continue
            nowhere: tuple[dict[str, Any], bool | None] = ({}, None)
            area, covered = max(here, key=lambda item: item[1] is True, default=nowhere)
            found.append(
                Alert(
                    id=f"{name} {part}" if part else name,
                    event=words(info.get("event")) or "Warning that can't be read",
                    severity=words(info.get("severity")),
                    urgency=words(info.get("urgency")),
                    headline=words(info.get("headline")),
                    area=(words(area.get("areaDesc")) or "area without a name") + ("" if covered else _DOUBT),
                    onset=local(info.get("onset") or info.get("effective"), zone),
                    ends=local(info.get("expires"), zone),
                    sender=words(info.get("senderName")),
                    description=words(info.get("description")),
                    instruction=words(info.get("instruction")),
                )
            )
    return found


def _in_language(told: Sequence[dict[str, Any]], language: str) -> list[dict[str, Any]]:
    """Those of one language: each is told in several."""
    spoken = [str(info.get("language") or "")[:2].lower() for info in told]
    chosen = next((item for item in (language, "en") if item in spoken), spoken[0])
    return [info for info, item in zip(told, spoken, strict=True) if item == chosen]


def _level(info: dict[str, Any]) -> str | None:
    for item in objects(info.get("parameter")):
        if item.get("valueName") == "awareness_level":
            return str(item.get("value")).partition(";")[0].strip()
    return None


def _covered(area: dict[str, Any], place: Place) -> bool | None:
    """Whether `place` lies in `area`; None if that can't be told."""
    known: list[bool | None] = [
        covers(str(code.get("value")), place.latitude, place.longitude)
        for code in objects(area.get("geocode"))
        if code.get("valueName") == "EMMA_ID"
    ]
    polygons: Any = area.get("polygon")
    texts = cast("list[Any]", polygons if isinstance(polygons, list) else [polygons] if polygons else [])
    known += [_encloses(str(text), place) for text in texts]
    if any(known):
        return True
    return None if not known or None in known else False


def _encloses(polygon: str, place: Place) -> bool | None:
    """Whether `polygon`, which is CAP's pairs of latitude and longitude, has `place` in it."""
    try:
        corners = [(float(pair.split(",")[1]), float(pair.split(",")[0])) for pair in polygon.split()]
    except (ValueError, IndexError):
        return None
    return inside(corners, place.latitude, place.longitude) if len(corners) > 2 else None
