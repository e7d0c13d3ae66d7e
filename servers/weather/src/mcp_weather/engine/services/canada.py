"""Alerts of Environment and Climate Change Canada, from MSC GeoMet (OGC API - Features), for a point."""

from __future__ import annotations

from datetime import tzinfo
from typing import Any

from mcp_weather.engine.computed.timestamps import format_local
from mcp_weather.engine.json_values import as_object, as_objects
from mcp_weather.engine.services.cap import read_text
from mcp_weather.engine.services.source import Source
from mcp_weather.models import Alert

__all__ = ["CANADA", "read_alerts"]

CANADA = Source("Environment Canada", "Environment and Climate Change Canada Data Server End-use Licence")

# CAP's words for Canada's colours, as Europe's services use them for the same colours.
_SEVERITY_OF_COLOUR = {"yellow": "Moderate", "orange": "Severe", "red": "Extreme"}
# What has no colour is ranked by its kind.
_SEVERITY_OF_KIND = {"warning": "Severe", "watch": "Moderate", "advisory": "Minor", "statement": "Minor"}


def read_alerts(document: dict[str, Any], zone: tzinfo, language: str) -> list[Alert]:
    """Return the alerts of a list that was asked for one point, in French if that is `language`, else in English."""
    alerts: list[Alert] = []
    for number, feature in enumerate(as_objects(document["features"])):
        properties = as_object(feature.get("properties"))
        if properties.get("alert_type") == "ending" or properties.get("status_en") == "ended":
            continue
        alerts.append(_read_alert(properties, number, zone, language))
    return alerts


def _read_alert(properties: dict[str, Any], number: int, zone: tzinfo, language: str) -> Alert:
    """Return an alert; what can't be read is an alert all the same.

    Args:
        number: which of the list it is.
    """
    suffix = "en"
    if language == "fr" and properties.get("alert_name_fr"):
        suffix = "fr"
    return Alert(
        id=read_text(properties.get("id")) or f"without an identifier {number}",
        event=read_text(properties.get(f"alert_name_{suffix}")) or "Alert that can't be read",
        severity=_read_severity(properties),
        headline=read_text(properties.get(f"alert_short_name_{suffix}")),
        area=read_text(properties.get(f"feature_name_{suffix}")),
        onset=format_local(properties.get("validity_datetime") or properties.get("publication_datetime"), zone),
        ends=format_local(properties.get("event_end_datetime"), zone),
        sender=CANADA.name,
        description=read_text(properties.get(f"alert_text_{suffix}")),
    )


def _read_severity(properties: dict[str, Any]) -> str | None:
    """Return how bad it may get; None if neither a colour nor a kind says so."""
    severity = _SEVERITY_OF_COLOUR.get(str(properties.get("risk_colour_en")).lower())
    return severity or _SEVERITY_OF_KIND.get(str(properties.get("alert_type")))
