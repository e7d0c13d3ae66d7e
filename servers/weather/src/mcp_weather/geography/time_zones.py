"""Time zones by their names."""

from __future__ import annotations

from datetime import tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

__all__ = ["find_zone"]


def find_zone(name: str) -> tzinfo | None:
    """Return the zone that the IANA calls `name`; None if there is none."""
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, ZoneInfoNotFoundError):
        # The system has folders among its zones, such as `America`.
        return None
