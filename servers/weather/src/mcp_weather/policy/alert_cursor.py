"""Decides where a page of alerts begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mcp_batteries.cursors import Cursor
from mcp_weather.policy.place import Place

__all__ = ["AlertPosition", "alert_scope", "parse_alerts_cursor"]


@dataclass(frozen=True)
class AlertPosition:
    """The position of the last alert that was shown; empty before the first page."""

    sort_key: tuple[Any, ...]


def parse_alerts_cursor(cursor: str | None, place: Place) -> AlertPosition:
    """Return where the next page of the alerts of `place` begins.

    Raises:
        Invalid: the cursor belongs to another place, or was not made here.
    """
    if not cursor:
        return AlertPosition(())
    return AlertPosition(tuple(Cursor.decode("alerts", cursor, alert_scope(place.latitude, place.longitude))))


def alert_scope(latitude: float, longitude: float) -> str:
    """Return the scope of a cursor of a place's alerts."""
    return f"{latitude:.4f},{longitude:.4f}"
