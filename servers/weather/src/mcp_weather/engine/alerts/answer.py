"""Alerts of all services that may cover a place, as one answer that never turns "not known" into "none"."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from mcp_batteries.cursors import Cursor
from mcp_weather.engine.computed.timestamps import parse_timestamp
from mcp_weather.engine.services.service_alerts import ServiceAlerts
from mcp_weather.models import Alert, Alerts, Origin, PlaceInfo
from mcp_weather.policy.alert_cursor import AlertCursor, alert_scope

__all__ = ["combine_alerts", "take_page"]

# With all that is around them, an answer with so many bytes of alerts stays below 10 kB.
_MAX_PAGE_BYTES = 8000

# CAP 1.2, severity; what is of unknown severity comes last.
_RANK = {"Extreme": 0, "Severe": 1, "Moderate": 2, "Minor": 3}
_UNKNOWN_RANK = 4


class _Verdict(NamedTuple):
    """What the services say together."""

    status: Literal["alerts", "none", "not_covered", "unavailable"]
    explanation: str


def combine_alerts(
    place: PlaceInfo, answers: Sequence[ServiceAlerts], other_services: Sequence[str], *, now: float
) -> Alerts:
    """Return the answer for `place`, with all alerts.

    Args:
        answers: one of each service that covers the place.
        other_services: those that do not.
        now: seconds since the epoch.
    """
    alerts_by_id: dict[str, Alert] = {}
    for answer in answers:
        for alert in answer.alerts:
            alerts_by_id[alert.id] = alert
    alerts = sorted(alerts_by_id.values(), key=_sort_key)
    verdict = _judge(answers, alerts, now)
    return Alerts(
        place=place,
        status=verdict.status,
        explanation=verdict.explanation,
        covered_by=[answer.service for answer in answers],
        not_covered_by=list(other_services),
        alerts=alerts,
        total=len(alerts),
        origin=_oldest_origin(answers),
    )


def _judge(answers: Sequence[ServiceAlerts], alerts: Sequence[Alert], now: float) -> _Verdict:
    """Say what the answers mean together."""
    unconfirmed = [answer for answer in answers if not answer.is_confirmed]
    doubts = " ".join(_describe_doubt(answer) for answer in unconfirmed)
    if alerts:
        return _Verdict("alerts", f"{_describe_alerts(alerts, now)} {doubts}".strip())
    if unconfirmed:
        return _Verdict("unavailable", f"Not known: {doubts}")
    if answers:
        services = " and ".join(answer.service for answer in answers)
        return _Verdict("none", f"None in effect, says {services}.")
    return _Verdict(
        "not_covered",
        "Not known: no service built in covers this place. Ask the national weather service of the country.",
    )


def _describe_alerts(alerts: Sequence[Alert], now: float) -> str:
    """Say how many alerts there are and which is the worst."""
    worst = alerts[0].severity or "of unknown severity"
    description = f"{len(alerts)} in effect or announced, the worst {worst}."
    # A service may be late with the end of an alert, or with taking it off the list: such an alert is still shown.
    ended_count = sum(1 for alert in alerts if _has_ended(alert, now))
    if ended_count:
        description += f" Of {ended_count} the end has passed, though still listed."
    return description


def _has_ended(alert: Alert, now: float) -> bool:
    end = parse_timestamp(alert.ends)
    return end is not None and end.timestamp() <= now


def _describe_doubt(answer: ServiceAlerts) -> str:
    """Say why an answer may not be true any more."""
    if answer.origin is None:
        return f"{answer.service} could not be asked. {answer.problem or ''}".rstrip()
    if answer.gap and not answer.origin.stale:
        return answer.gap
    content = "had these" if answer.alerts else "had none"
    reason = answer.origin.reason or "Nothing newer is known."
    return f"{answer.service}, last looked at {answer.origin.fetched_at}, {content} then: {reason}"


def _oldest_origin(answers: Sequence[ServiceAlerts]) -> Origin | None:
    """Return the origin that is worth least."""
    origins = [answer.origin for answer in answers if answer.origin]
    return max(origins, key=lambda origin: (origin.stale, origin.age_s), default=None)


def take_page(answer: Alerts, cursor: AlertCursor | None = None) -> Alerts:
    """Return as many alerts of `answer` as fit into a page, the worst first.

    Args:
        cursor: from the page before.

    Raises:
        Invalid: the cursor is that of another place.
    """
    remaining = answer.alerts
    if cursor is not None:
        last_shown = cursor.last_shown(answer.place.latitude, answer.place.longitude)
        remaining = [alert for alert in answer.alerts if _sort_key(alert) > last_shown]
    page: list[Alert] = []
    size = 0
    for alert in remaining:
        # A result has it twice, as data and as text.
        size += 2 * len(alert.model_dump_json(exclude_none=True).encode())
        if page and size > _MAX_PAGE_BYTES:
            break
        page.append(alert)
    next_cursor = None
    if len(remaining) > len(page):
        scope = alert_scope(answer.place.latitude, answer.place.longitude)
        next_cursor = Cursor.encode("alerts", _sort_key(page[-1]), scope)
    return answer.model_copy(update={"alerts": page, "next_cursor": next_cursor})


def _sort_key(alert: Alert) -> tuple[Any, ...]:
    """Return what the worst alert has the least of."""
    digest = hashlib.blake2b(alert.id.encode(), digest_size=8).hexdigest()
    return _RANK.get(alert.severity or "", _UNKNOWN_RANK), alert.onset or "", digest
