"""Forecasts by hour, by day and by quarters of an hour."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, tzinfo
from functools import partial
from typing import NamedTuple

from mcp_batteries.errors import Problem, Unavailable
from mcp_weather.engine.answers.local_time import find_local_time
from mcp_weather.engine.computed.ensemble import compute_percentiles, count_fewest_members
from mcp_weather.engine.computed.series import list_empty_columns, require_rows, rows_between
from mcp_weather.engine.computed.summary import summarize
from mcp_weather.engine.computed.timestamps import zone_of
from mcp_weather.engine.engine import Engine
from mcp_weather.engine.gather import attempt, gather
from mcp_weather.engine.requests import queries
from mcp_weather.engine.requests.queries import ENSEMBLE_MODEL, Group, Model
from mcp_weather.engine.services.nws import may_cover
from mcp_weather.engine.services.open_meteo import LocalTable
from mcp_weather.engine.services.open_meteo_documents import OPEN_METEO, read_table
from mcp_weather.engine.services.source import origin_of
from mcp_weather.models import Forecast, Table
from mcp_weather.policy.days import Day, WrittenDay
from mcp_weather.policy.place import Place
from mcp_weather.policy.units import Units

__all__ = ["ForecastQuery", "add_spread", "fetch_day", "fetch_forecast", "fetch_quarter_hours"]

_DEFAULT_MODELS = ("best_match",)
# The last row of a document has no amounts.
_QUARTER_HOURS_OF_DOCUMENT = 97
_QUARTER_HOURS_PER_HOUR = 4
_EVENING = time(18)
_MORNING = time(6)
# Documents of the ensemble have so many days, by the hours that are asked for.
_ENSEMBLE_DAYS = 2
_LONG_ENSEMBLE_DAYS = 8


@dataclass(frozen=True)
class ForecastQuery:
    """A forecast that is asked for.

    Attributes:
        step: `hourly` or `daily`.
        groups: of variables.
        span: hours or days.
    """

    place: Place
    step: str
    groups: Sequence[Group]
    span: int
    units: Units
    models: Sequence[Model] = _DEFAULT_MODELS

    @property
    def is_hourly(self) -> bool:
        """Whether `span` is hours."""
        return self.step == "hourly"


async def fetch_forecast(engine: Engine, query: ForecastQuery) -> Forecast:
    """Return a forecast of each model.

    Where the default model can't be had, the US has another source: callers may get a table called `nws`, with fewer
    variables and other names, instead of `best_match`.
    """
    if tuple(query.models) != _DEFAULT_MODELS or not may_cover(query.place):
        return await _fetch_models(engine, query)
    try:
        return await _fetch_models(engine, query)
    except Unavailable as problem:
        official = await attempt(partial(engine.nws.fetch_forecast, query.place, query.step, query.span, query.units))
        if isinstance(official, Problem):
            raise
        note = f"[This is the National Weather Service's forecast, which has fewer variables: {problem}]"
        return official.model_copy(update={"notes": [note, *official.notes]})


async def fetch_day(
    engine: Engine,
    place: Place,
    groups: Sequence[Group],
    written_day: WrittenDay,
    units: Units,
    models: Sequence[Model] = _DEFAULT_MODELS,
) -> Forecast:
    """Return the hours of one day, or of the night that begins on it: from the evening to the next morning.

    Raises:
        Invalid: there is no forecast of that day.
    """
    local_time = await find_local_time(engine, place)
    day = written_day.in_forecast(local_time.today)
    period = _period_of(day, local_time.zone)
    # A day on which clocks change has 23 or 25 hours, and the hour that it is has begun already.
    hours = math.ceil((period.end.timestamp() - engine.cache.clock()) / 3600) + 1
    forecast = await fetch_forecast(engine, ForecastQuery(place, "hourly", groups, hours, units, models))
    notes = list(forecast.notes)
    tables: dict[str, Table] = {}
    for model, table in forecast.tables.items():
        hours_of_day = rows_between(table, period.begin, period.end)
        if hours_of_day.time:
            tables[model] = hours_of_day
        else:
            notes.append(f"[{model} has no hours of {day.date}: it ends at {table.time[-1]}.]")
    if not tables:
        longest = max(forecast.tables.values(), key=lambda table: table.time[-1])
        raise Unavailable(
            f"There is no forecast by hour of {day.date}: that of {longest.origin.source} ends at {longest.time[-1]}.",
            "Ask for an earlier day, or try again later.",
        )
    if day.is_night:
        notes.append(f"[The night: {period.begin:%Y-%m-%d %H:%M} to {period.end:%Y-%m-%d %H:%M}.]")
    summary = summarize(next(iter(tables.values())))
    return forecast.model_copy(update={"tables": tables, "summary": summary, "notes": notes})


class _Period(NamedTuple):
    """The time from a moment to before another."""

    begin: datetime
    end: datetime


def _period_of(day: Day, zone: tzinfo) -> _Period:
    """Return the time from midnight to midnight at the place, or of the night that begins on the day."""
    next_date = day.date + timedelta(days=1)
    if day.is_night:
        return _Period(datetime.combine(day.date, _EVENING, zone), datetime.combine(next_date, _MORNING, zone))
    return _Period(datetime.combine(day.date, time.min, zone), datetime.combine(next_date, time.min, zone))


async def fetch_quarter_hours(engine: Engine, place: Place, hours: int, units: Units) -> Forecast:
    """Return rain and wind by quarters of an hour."""
    snapshot = await engine.cache.get(queries.quarter_hours_key(place, _QUARTER_HOURS_OF_DOCUMENT))
    document = snapshot.json()
    count = _QUARTER_HOURS_PER_HOUR * hours
    table = engine.open_meteo.read_rows_to_come(snapshot, "minutely_15", count, units)
    return Forecast(
        place=place.to_info(str(zone_of(document)), elevation=document.get("elevation")),
        step="15-minute",
        tables={"best_match": table},
        summary=summarize(table, "quarters of an hour"),
        notes=["[Quarters are computed in Central Europe and North America, and elsewhere between hours.]"],
    )


async def add_spread(engine: Engine, forecast: Forecast, place: Place, units: Units) -> Forecast:
    """Return a forecast by hour with a table that says how certain it is; without it a note says why."""
    times = next(iter(forecast.tables.values())).time
    try:
        spread = await _fetch_spread(engine, place, times, units)
    except Problem as problem:
        notes = [*forecast.notes, f"[The ensemble is missing: {problem}]"]
        return forecast.model_copy(update={"notes": notes})
    percentiles = spread.percentiles
    notes = [
        *forecast.notes,
        f"[Eight in ten of the members of the ensemble {ENSEMBLE_MODEL} are between p10 and p90.]",
    ]
    if spread.fewest_members < spread.members:
        notes.append(f"[In some hours {spread.fewest_members} of its {spread.members} members answer.]")
    if datetime.fromisoformat(percentiles.time[-1]) < datetime.fromisoformat(times[-1]):
        notes.append(f"[The ensemble ends at {percentiles.time[-1]}.]")
    return forecast.model_copy(update={"tables": {**forecast.tables, "ensemble": percentiles}, "notes": notes})


class _Spread(NamedTuple):
    """What the ensemble says, and of how many of its members that is at least."""

    percentiles: Table
    fewest_members: int
    members: int


async def _fetch_spread(engine: Engine, place: Place, times: Sequence[str], units: Units) -> _Spread:
    """Return what the ensemble says of the hours from the first of `times` to the last.

    Raises:
        Unavailable: it says nothing of them.
    """
    begin = datetime.fromisoformat(times[0])
    end = datetime.fromisoformat(times[-1]) + timedelta(hours=1)
    hours = math.ceil(end.timestamp() / 3600 - engine.cache.clock() // 3600)
    days = _ENSEMBLE_DAYS if hours <= 24 else _LONG_ENSEMBLE_DAYS
    snapshot = await engine.cache.get(queries.ensemble_key(place, days))
    origin = origin_of(snapshot, OPEN_METEO)
    members = read_table(snapshot.json(), "hourly", units, origin, now=engine.cache.clock())
    hours_to_come = require_rows(compute_percentiles(members), snapshot)
    percentiles = rows_between(hours_to_come, begin, end)
    if not percentiles.time:
        raise Unavailable(f"It ends at {hours_to_come.time[-1]}.", "Ask for an earlier day.")
    return _Spread(percentiles, *count_fewest_members(members, percentiles.time[0], percentiles.time[-1]))


async def _fetch_models(engine: Engine, query: ForecastQuery) -> Forecast:
    """Return the forecasts of Open-Meteo's models; one of several that can't be had is missing, and a note says so.

    Raises:
        Problem: none of them can be had.
    """
    answers: dict[Model, LocalTable] = {}
    notes: list[str] = []

    async def fetch_model(model: Model) -> None:
        try:
            answers[model] = await _fetch_model(engine, query, model)
        except Problem as problem:
            if len(query.models) == 1:
                raise
            notes.append(f"[{model} is missing: {problem}]")

    await gather(*(partial(fetch_model, model) for model in query.models))
    if not answers:
        raise Unavailable(f"None of the {len(query.models)} models answered.", "Try again in a moment.")
    tables = {model: answers[model].table for model in query.models if model in answers}
    for model, table in tables.items():
        empty_columns = list_empty_columns(table)
        if empty_columns:
            notes.append(f"[{model} has no {', '.join(empty_columns)} here]")
    summary: list[str] = []
    if query.is_hourly:
        first_table = next(iter(tables.values()))
        summary = summarize(first_table)
    return Forecast(
        place=query.place.to_info(str(_last_zone(answers))),
        step="hourly" if query.is_hourly else "daily",
        tables=tables,
        summary=summary,
        notes=notes,
    )


async def _fetch_model(engine: Engine, query: ForecastQuery, model: Model) -> LocalTable:
    if query.is_hourly:
        return await engine.open_meteo.fetch_hours(query.place, query.groups, query.span, model, query.units)
    return await engine.open_meteo.fetch_days(query.place, query.groups, query.span, model, query.units)


def _last_zone(answers: dict[Model, LocalTable]) -> tzinfo:
    """Return the zone of the answer that came last; all of them should have the same."""
    zone: tzinfo = UTC
    for answer in answers.values():
        zone = answer.zone
    return zone
