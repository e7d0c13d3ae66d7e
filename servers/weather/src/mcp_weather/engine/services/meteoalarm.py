"""MeteoAlarm: warnings of 38 national weather services in CAP 1.2, one list for each country, as JSON."""

from __future__ import annotations

from datetime import tzinfo
from typing import Any

from mcp_weather.engine.json_values import as_object, as_objects
from mcp_weather.engine.services.cap_messages import read_messages
from mcp_weather.engine.services.source import Source
from mcp_weather.models import Alert
from mcp_weather.policy.place import Place

__all__ = ["COUNTRIES", "METEOALARM", "read_alerts"]

METEOALARM = Source("MeteoAlarm (EUMETNET)", "CC BY 4.0")

# The name of each country's list, by ISO 3166-1 code. Andorra is an area of France's list, Åland one of Finland's.
COUNTRIES = {
    "AD": "france", "AX": "finland",
    "AT": "austria", "BA": "bosnia-herzegovina", "BE": "belgium", "BG": "bulgaria", "CH": "switzerland", "CY": "cyprus",
    "CZ": "czechia", "DE": "germany", "DK": "denmark", "EE": "estonia", "ES": "spain", "FI": "finland", "FR": "france",
    "GB": "united-kingdom", "GR": "greece", "HR": "croatia", "HU": "hungary", "IE": "ireland", "IL": "israel",
    "IS": "iceland", "IT": "italy", "LT": "lithuania", "LU": "luxembourg", "LV": "latvia", "MD": "moldova",
    "ME": "montenegro", "MK": "republic-of-north-macedonia", "MT": "malta", "NL": "netherlands", "NO": "norway",
    "PL": "poland", "PT": "portugal", "RO": "romania", "RS": "serbia", "SE": "sweden", "SI": "slovenia",
    "SK": "slovakia", "UA": "ukraine",
}  # fmt: skip


def read_alerts(document: dict[str, Any], *, place: Place, zone: tzinfo, language: str) -> list[Alert]:
    """Return the warnings for `place`, in `language` if they are told in it, else in English, else as they come."""
    messages = [as_object(warning.get("alert")) for warning in as_objects(document["warnings"])]
    return read_messages(messages, place, zone, language)
