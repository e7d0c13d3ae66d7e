"""Alerts of all services that may cover a place, as one answer that never turns "not known" into "none"."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

from mcp_batteries.limits import Cursor
from mcp_weather.engine.services.cap import moment
from mcp_weather.models import Alert, Alerts, Origin, PlaceInfo
from mcp_weather.policy import place_scope

__all__ = ["Look", "answer", "page"]

_MOST_BYTES = 8000
"""Of the alerts of one answer; with all that is around them it stays below 10 kB."""

_MOST_AGE = 900
"""Seconds after which a list without alerts proves nothing, whatever the cache says of it."""
_RANK = {"Extreme": 0, "Severe": 1, "Moderate": 2, "Minor": 3}
"""CAP 1.2, severity; what is of unknown severity comes last."""


@dataclass(frozen=True)
class Look:
    """What one service answered for a place that it covers, or why it did not."""

    service: str
    alerts: Sequence[Alert] = ()
    origin: Origin | None = None
    zone: tzinfo | None = None
    problem: str | None = None

    @property
    def confirmed(self) -> bool:
        """The service itself said so, just now: only then does an empty list mean that there are none."""
        return self.origin is not None and not self.origin.stale and self.origin.age_s <= _MOST_AGE


def answer(place: PlaceInfo, looks: Sequence[Look], elsewhere: Sequence[str], *, now: float) -> Alerts:
    """The answer for `place`, with all alerts.

    Args:
        looks: one for each service that covers the place.
        elsewhere: the services that do not.
        now: seconds since the epoch.
    """
    found = sorted({alert.id: alert for look in looks for alert in look.alerts}.values(), key=_order)
    shaky = [look for look in looks if not look.confirmed]
    doubts = " ".join(_doubt(look) for look in shaky)
    if found:
        worst = found[0].severity or "of unknown severity"
        over = sum((end := moment(alert.ends)) is not None and end.timestamp() <= now for alert in found)
        # A service may be late with its end, or with taking it off the list: it is told, not left out.
        ended = f"Of {over} the end has passed, though still listed. " if over else ""
        status = "alerts"
        explanation = f"{len(found)} in effect or announced, the worst {worst}. {ended}{doubts}".strip()
    elif shaky:
        status, explanation = "unavailable", f"Not known, so there may well be some. {doubts}"
    elif looks:
        status, explanation = "none", f"None in effect, says {' and '.join(look.service for look in looks)}."
    else:
        status = "not_covered"
        explanation = (
            "Not known: no service built in covers this place. Ask the national weather service of the country."
        )
    origins = [look.origin for look in looks if look.origin]
    return Alerts(
        place=place,
        status=status,
        explanation=explanation,
        covered_by=[look.service for look in looks],
        not_covered_by=list(elsewhere),
        alerts=found,
        total=len(found),
        origin=max(origins, key=lambda origin: (origin.stale, origin.age_s), default=None),
    )


def page(found: Alerts, after: Sequence[Any]) -> Alerts:
    """As many alerts of `found` as fit into an answer, the worst first.

    Args:
        after: the position of the last alert that was shown before; empty for the first page.
    """
    left = [alert for alert in found.alerts if _order(alert) > tuple(after)] if after else found.alerts
    shown: list[Alert] = []
    size = 0
    for alert in left:
        # It is told twice, as data and as text.
        size += 2 * len(alert.model_dump_json(exclude_none=True).encode())
        if shown and size > _MOST_BYTES:
            break
        shown.append(alert)
    more = len(left) > len(shown)
    cursor = (
        Cursor.encode("alerts", _order(shown[-1]), place_scope(found.place.latitude, found.place.longitude))
        if more
        else None
    )
    return found.model_copy(update={"alerts": shown, "next_cursor": cursor})


def _order(alert: Alert) -> tuple[Any, ...]:
    name = hashlib.blake2b(alert.id.encode(), digest_size=8).hexdigest()
    return _RANK.get(alert.severity or "", 4), alert.onset or "", name


def _doubt(look: Look) -> str:
    if look.origin is None:
        return f"{look.service} could not be asked: {look.problem}"
    then = "had these" if look.alerts else "had none"
    why = look.origin.reason or "Nothing newer is known."
    return f"{look.service}, last looked at {look.origin.fetched_at}, {then} then: {why}"
