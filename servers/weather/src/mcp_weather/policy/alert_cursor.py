"""Decides where a page of alerts begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mcp_batteries.cursors import Cursor

__all__ = ["AlertCursor", "alert_scope"]


@dataclass(frozen=True)
class AlertCursor:
    """Where a page of alerts begins, as the page before says it: the place decides whether it is one of its own."""

    text: str

    @classmethod
    def parse(cls, text: str) -> AlertCursor:
        """Take any text; see `last_shown`."""
        return cls(text)

    def last_shown(self, latitude: float, longitude: float) -> tuple[Any, ...]:
        """Return the sort key of the last alert of a place that was shown.

        Raises:
            Invalid: the cursor belongs to another place, or was not made here.
        """
        return tuple(Cursor.decode("alerts", self.text, alert_scope(latitude, longitude)))


def alert_scope(latitude: float, longitude: float) -> str:
    """Return the scope of a cursor of a place's alerts."""
    return f"{latitude:.4f},{longitude:.4f}"
