"""Moments as services tell them and as results show them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from typing import Any

from mcp_weather.geography.time_zones import find_zone

__all__ = ["current_day", "format_local", "format_timestamp", "moment_at", "parse_timestamp", "zone_of"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def zone_of(document: dict[str, Any]) -> tzinfo:
    """Return the zone that the times of an Open-Meteo document are told in."""
    zone = find_zone(str(document.get("timezone")))
    if zone is not None:
        return zone
    return timezone(timedelta(seconds=int(document.get("utc_offset_seconds") or 0)))


def moment_at(seconds: float, zone: tzinfo = UTC) -> datetime:
    """Return the moment so many seconds after the epoch, or before it.

    Windows's own function knows no moments before 1970.
    """
    return (_EPOCH + timedelta(seconds=seconds)).astimezone(zone)


def format_timestamp(seconds: float, zone: tzinfo = UTC) -> str:
    """Return a moment as RFC 3339, in `zone`, to the minute."""
    return moment_at(seconds, zone).isoformat(timespec="minutes")


def parse_timestamp(text: Any) -> datetime | None:
    """Return the moment of an ISO 8601 text with its offset; None if it is something else."""
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    # The year 1 is how some say that they do not know; no zone can be applied to it.
    if moment.tzinfo and 1900 < moment.year < 9999:
        return moment
    return None


def format_local(text: Any, zone: tzinfo) -> str | None:
    """Return the moment of an ISO 8601 text in `zone`, to the minute; None if it is something else."""
    moment = parse_timestamp(text)
    if moment is None:
        return None
    return moment.astimezone(zone).isoformat(timespec="minutes")


def current_day(now: float, zone: tzinfo) -> date:
    """Return which day it is in `zone`."""
    return moment_at(now, zone).date()
