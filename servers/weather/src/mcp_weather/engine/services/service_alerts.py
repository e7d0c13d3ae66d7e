"""What one service says of the alerts at a place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

from mcp_weather.engine.json_values import is_part_of_list
from mcp_weather.models import Alert, Origin

__all__ = ["ServiceAlerts"]

# A list without alerts proves nothing after so many seconds, whatever the cache says of it.
_MAX_CONFIRMED_AGE_SECONDS = 900


@dataclass(frozen=True)
class ServiceAlerts:
    """What one service answered for a place that it covers, or why it did not.

    Attributes:
        zone: of the place, if it was found out on the way.
        problem: why the service did not answer.
        gap: why its list may lack alerts for the place, as a sentence.
    """

    service: str
    alerts: Sequence[Alert] = ()
    origin: Origin | None = None
    zone: tzinfo | None = None
    problem: str | None = None
    gap: str | None = None

    @classmethod
    def read(
        cls, service: str, document: dict[str, Any], alerts: Sequence[Alert], origin: Origin, zone: tzinfo
    ) -> ServiceAlerts:
        """Return what a list says, whose document may say that there is more of it."""
        gap = None
        if is_part_of_list(document):
            gap = f"{service} lists more than was read: its answer came in parts."
        return cls(service, alerts, origin, zone, gap=gap)

    @property
    def is_confirmed(self) -> bool:
        """Whether the service itself said so just now: only then does an empty list mean that there are none."""
        if self.origin is None or self.origin.stale or self.gap:
            return False
        return self.origin.age_s <= _MAX_CONFIRMED_AGE_SECONDS
