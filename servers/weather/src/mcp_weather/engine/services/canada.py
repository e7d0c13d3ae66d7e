"""Alerts of Environment and Climate Change Canada, from MSC GeoMet (OGC API - Features), for a point."""

from __future__ import annotations

from datetime import tzinfo
from typing import Any

from mcp_batteries.errors import Unavailable
from mcp_weather.engine.services.cap import local, objects, words
from mcp_weather.models import Alert

__all__ = ["CANADA", "alerts"]

CANADA = ("Environment Canada", "Environment and Climate Change Canada Data Server End-use Licence")

_SEVERITY = {"warning": "Severe", "watch": "Moderate", "advisory": "Minor", "statement": "Minor"}
"""Canada ranks alerts by their kind; CAP's word for it."""


def alerts(document: dict[str, Any], zone: tzinfo, language: str) -> list[Alert]:
    """The alerts of a list that was asked for one point, in French if that is `language`, else in English.

    Raises:
        Unavailable: it is not such a list.
    """
    features: Any = document.get("features")
    if document.get("type") != "FeatureCollection" or not isinstance(features, list):
        raise Unavailable("Environment Canada sent a list of alerts that can't be read.", "Try again soon.")
    if not features and document.get("numberMatched"):
        raise Unavailable("Environment Canada sent the list of alerts in parts.", "Try again soon.")
    found: list[Alert] = []
    for number, feature in enumerate(objects(features)):
        about = objects([feature.get("properties")])[0]
        tongue = "fr" if language == "fr" and about.get("alert_name_fr") else "en"
        if about.get("alert_type") == "ending" or about.get("status_en") == "ended":
            continue
        kind = str(about.get("alert_type") or "")
        found.append(
            Alert(
                id=words(about.get("id")) or f"without an identifier {number}",
                event=words(about.get(f"alert_name_{tongue}")) or "Alert that can't be read",
                severity=_SEVERITY.get(kind),
                headline=words(about.get(f"alert_short_name_{tongue}")),
                area=words(about.get(f"feature_name_{tongue}")),
                onset=local(about.get("validity_datetime") or about.get("publication_datetime"), zone),
                ends=local(about.get("event_end_datetime"), zone),
                sender=CANADA[0],
                description=words(about.get(f"alert_text_{tongue}")),
            )
        )
    return found
