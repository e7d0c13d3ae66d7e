"""The weather of a place at a glance: now, the next days and alerts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from mcp_batteries.errors import Problem, Unavailable
from mcp_weather.engine.engine import Engine
from mcp_weather.engine.gather import attempt, gather
from mcp_weather.engine.services.nws import may_cover
from mcp_weather.engine.services.open_meteo import LocalTable, Present
from mcp_weather.models import Alert, Alerts, Reading, Table, Weather
from mcp_weather.policy.place import Place
from mcp_weather.policy.units import Units

__all__ = ["fetch_overview"]

_MAX_ALERTS = 5
_MAX_AREA_LETTERS = 100
_RESOURCES = ("now", "daily", "alerts")


@dataclass(frozen=True)
class _Answers:
    """What the services answered, or why they did not."""

    present: Present | Problem
    daily: LocalTable | Problem
    alerts: Alerts
    observation: Reading | Problem | None

    def find_timezone(self) -> str | None:
        """Return the name of the place's time zone, if any service knows it."""
        for answer in (self.present, self.daily):
            if not isinstance(answer, Problem):
                return str(answer.zone)
        return self.alerts.place.timezone


class _Days(NamedTuple):
    """The next days, and a note if they are missing or another source's."""

    table: Table | None
    note: str | None


async def fetch_overview(engine: Engine, place: Place, units: Units, days: int) -> Weather:
    """Return now, the next days and alerts; what can't be had is missing, and a note says why.

    Raises:
        Problem: none of them can be had.
    """
    answers = await _ask_services(engine, place, units, days)
    notes: list[str] = []
    present = None
    elevation: Any = None
    if isinstance(answers.present, Problem):
        notes.append(f"[The present is missing: {answers.present}]")
    else:
        present = answers.present.reading
        elevation = answers.present.elevation
    next_days = await _find_days(engine, place, units, days, answers.daily)
    if next_days.note:
        notes.append(next_days.note)
    observation = None
    if isinstance(answers.observation, Problem):
        notes.append(f"[Nothing measured: {answers.observation.failure}]")
    else:
        observation = answers.observation
    if not (present or next_days.table or observation) and answers.alerts.status not in ("alerts", "none"):
        if isinstance(answers.present, Problem):
            raise answers.present
        raise Unavailable("No source answered.", "Try again in a moment.")
    alerts = _shorten_alerts(answers.alerts)
    hidden_alerts = len(answers.alerts.alerts) - len(alerts.alerts)
    if hidden_alerts:
        notes.append(f"[{hidden_alerts} more alerts: `get_alerts`]")
    return Weather(
        place=place.to_info(answers.find_timezone(), elevation=elevation),
        now=present,
        observation=observation,
        daily=next_days.table,
        alerts=alerts,
        resources=[place.uri(kind) for kind in _RESOURCES],
        notes=notes,
    )


async def _ask_services(engine: Engine, place: Place, units: Units, days: int) -> _Answers:
    """Ask all services at once."""
    present, daily, alerts, observation = await gather(
        partial(attempt, partial(engine.open_meteo.fetch_present, place, units)),
        partial(attempt, partial(engine.open_meteo.fetch_days, place, ("basic",), days, "best_match", units)),
        partial(engine.alerts.fetch, place),
        partial(attempt, partial(engine.nws.fetch_observation, place, units)),
    )
    return _Answers(present, daily, alerts, observation)


async def _find_days(engine: Engine, place: Place, units: Units, days: int, daily: LocalTable | Problem) -> _Days:
    """Return the next days, in the US as the Weather Service has them if the models can't be had."""
    if not isinstance(daily, Problem):
        return _Days(daily.table, None)
    if may_cover(place):
        official = await attempt(partial(engine.nws.fetch_forecast, place, "daily", days, units))
        if not isinstance(official, Problem):
            note = f"[The days are the National Weather Service's forecast: {daily}]"
            return _Days(official.tables["nws"], note)
    return _Days(None, f"[The forecast by day is missing: {daily}]")


def _shorten_alerts(alerts: Alerts) -> Alerts:
    """Return the worst alerts without their texts and reasons, which `get_alerts` has in full."""
    shortened: list[Alert] = []
    for alert in alerts.alerts[:_MAX_ALERTS]:
        area = (alert.area or "")[:_MAX_AREA_LETTERS]
        brief = {"description": None, "instruction": None, "headline": None, "area": area}
        shortened.append(alert.model_copy(update=brief))
    explanation = alerts.explanation
    if alerts.status == "unavailable" and alerts.origin is None:
        explanation = f"Not known: {' and '.join(alerts.covered_by)} could not be asked; `get_alerts` says why."
    return alerts.model_copy(update={"alerts": shortened, "explanation": explanation})
