"""What is known of a place: answers fetched through the cache, made into results."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import partial
from typing import Any

import anyio

from mcp_batteries.errors import NotFound, Problem, Unavailable
from mcp_batteries.limits import in_thread
from mcp_batteries.remote import Cache, Snapshot
from mcp_weather.engine import nws
from mcp_weather.engine import queries as ask
from mcp_weather.engine.astronomy import sky
from mcp_weather.engine.queries import Group, Model
from mcp_weather.engine.series import Units, convert, origin, reading, table, today, zone_of
from mcp_weather.models import (
    AirQuality,
    Alerts,
    Astronomy,
    Forecast,
    History,
    Marine,
    Reading,
    Table,
    Weather,
)
from mcp_weather.policy import Day, Days, Place

__all__ = ["Engine", "LocalTime"]

_NORMAL_YEARS = range(1991, 2021)
"""The period of reference of the World Meteorological Organization."""
_AT_ONCE = 6
_FRESH_OBSERVATION = 2 * 3600
"""Seconds after which a station's observation is called old."""
_EAQI = ((20, "good"), (40, "fair"), (60, "moderate"), (80, "poor"), (100, "very poor"), (math.inf, "extremely poor"))
"""The European air quality index, as the European Environment Agency names its bands."""
_NORMAL_NAMES = (
    "temperature_2m_mean",
    "temperature_2m_max",
    "temperature_2m_min",
    "precipitation_sum",
    "wind_speed_10m_max",
)


@dataclass(frozen=True)
class LocalTime:
    """Which day it is at a place; `notes` say so if that could not be found out."""

    zone: tzinfo
    today: date
    notes: Sequence[str] = ()


class Engine:
    """Answers about places.

    Args:
        cache: answers by the keys of `queries`.
        language: of place names.
    """

    def __init__(self, cache: Cache, *, language: str) -> None:
        self.cache, self._language = cache, language

    async def hits(self, name: str, language: str | None) -> list[dict[str, Any]]:
        """What the geocoder has for `name`, in `language` or the server's."""
        found = (await self.cache.get(ask.geocoding_key(name, language or self._language))).json()
        # No match is an answer without results.
        hits: list[dict[str, Any]] = found.get("results") or []
        return [hit for hit in hits if "latitude" in hit and "longitude" in hit]

    # What a resource shows

    async def keys(self, place: Place, kind: str) -> list[str]:
        """The cache keys behind `kind` of `place`, for those who follow it."""
        match kind:
            case "now":
                return [ask.current_key(place)]
            case "hourly":
                return [ask.hourly_key(place, ("basic",), 48, "best_match")]
            case "daily":
                return [ask.daily_key(place, ("basic",), 7, "best_match")]
            case "air":
                return [ask.air_key(place, 2, pollen=False)]
            case _:
                return [ask.alerts_key(place)] if nws.may_cover(place) else []

    # What the tools answer

    async def weather(self, place: Place, units: Units, days: int) -> Weather:
        (now, zone), daily, alerts, observed = await _together(
            lambda: self.now(place, units),
            lambda: self._daily(place, ("basic",), days, "best_match", units),
            lambda: self.alerts(place),
            lambda: self.observation(place, units),
        )
        # What they say in full is for `get_alerts`.
        brief = [alert.model_copy(update={"description": None, "instruction": None}) for alert in alerts.alerts]
        alerts = alerts.model_copy(update={"alerts": brief})
        uris = [place.uri(kind) for kind in ("now", "daily", "alerts")]
        return Weather(
            place=place.info(str(zone)), now=now, observation=observed, daily=daily[0], alerts=alerts, resources=uris
        )

    async def now(self, place: Place, units: Units) -> tuple[Reading, tzinfo]:
        found = await self.cache.get(ask.current_key(place))
        document = found.json()
        now = reading(document, units, origin(found))
        if now is None:
            raise Unavailable("Open-Meteo sent an answer without the present.", "Try again in a moment.")
        return now, zone_of(document)

    async def forecast(
        self, place: Place, step: str, groups: Sequence[Group], span: int, models: Sequence[Model], units: Units
    ) -> Forecast:
        """`span` hours or days of each of `models`."""
        tables: dict[str, Table] = {}
        notes: list[str] = []
        zone: tzinfo = UTC

        async def one(model: Model) -> None:
            nonlocal zone
            work = self._hourly if step == "hourly" else self._daily
            try:
                tables[model], zone = await work(place, groups, span, model, units)
            except Problem as problem:
                if len(models) == 1:
                    raise
                notes.append(f"[{model} is missing: {problem}]")

        await _together(*(partial(one, model) for model in models))
        if not tables:
            raise Unavailable(f"None of the {len(models)} models could be had.", "Try again in a moment.")
        ordered = {model: tables[model] for model in models if model in tables}
        for model, found in ordered.items():
            if empty := [
                name
                for name, values in zip(found.names, found.values, strict=True)
                if not any(item is not None for item in values)
            ]:
                notes.append(f"[{model} has no {', '.join(empty)} here]")
        return Forecast(
            place=place.info(str(zone)), step="hourly" if step == "hourly" else "daily", tables=ordered, notes=notes
        )

    async def official(self, place: Place, step: str, span: int, units: Units) -> Forecast:
        """The National Weather Service's own forecast.

        Raises:
            NotFound: it does not cover the place.
        """
        point = await self._point(place)
        if point is None:
            raise NotFound(f"The National Weather Service does not cover {place.name}.", "Call again without `source`.")
        about, zone = point
        grid = ask.grid_key(str(about["gridId"]), int(about["gridX"]), int(about["gridY"]), hourly=step == "hourly")
        found = await self.cache.get(grid)
        most = span if step == "hourly" else 2 * span
        shown = nws.forecast(found.json(), units, origin(found, nws.NWS), zone, most, now=self._now())
        return Forecast(
            place=place.info(str(zone)), step="hourly" if step == "hourly" else "daily", tables={"nws": shown}
        )

    async def alerts(self, place: Place) -> Alerts:
        not_here = ["Open-Meteo (has no alerts)"]
        service = nws.NWS[0]
        if not nws.may_cover(place):
            return Alerts(
                place=place.info(),
                status="not_covered",
                explanation=f"Not known: the {service} covers the United States and their territories only, and no "
                "other source of alerts is built in. Ask the national weather service of the country.",
                covered_by=[],
                not_covered_by=[service, *not_here],
                alerts=[],
            )
        try:
            point = await self._point(place)
            if point is None:
                return Alerts(
                    place=place.info(),
                    status="not_covered",
                    explanation=f"Not known: the {service} says that it does not cover this point, and no other "
                    "source of alerts is built in.",
                    covered_by=[],
                    not_covered_by=[service, *not_here],
                    alerts=[],
                )
            found = await self.cache.get(ask.alerts_key(place))
        except Unavailable as problem:
            return Alerts(
                place=place.info(),
                status="unavailable",
                explanation=f"Could not be fetched, so there may well be some: {problem}",
                covered_by=[service],
                not_covered_by=not_here,
                alerts=[],
            )
        active = nws.alerts(found.json(), self._now(), point[1])
        worst = f", the worst {active[0].severity or 'of unknown severity'}" if active else ""
        return Alerts(
            place=place.info(str(point[1])),
            status="alerts" if active else "none",
            explanation=f"{len(active)} in effect{worst}." if active else "None in effect.",
            covered_by=[service],
            not_covered_by=not_here,
            alerts=active,
            origin=origin(found, nws.NWS),
        )

    async def observation(self, place: Place, units: Units) -> Reading | None:
        """What the nearest station of the National Weather Service that has something measured; None where none has."""
        if not nws.may_cover(place):
            return None
        try:
            point = await self._point(place)
            if point is None:
                return None
            about, zone = point
            key = ask.stations_key(str(about["gridId"]), int(about["gridX"]), int(about["gridY"]))
            stations: list[Any] = (await self.cache.get(key)).json().get("features") or []
        except (Unavailable, KeyError, TypeError, ValueError):
            return None
        best: tuple[datetime, Reading] | None = None
        for feature in stations[:3]:
            station = str(feature["properties"]["stationIdentifier"])
            try:
                found = await self.cache.get(ask.observation_key(station))
            except Problem:
                continue
            document = found.json()
            at = nws.observed_at(document)
            shown = nws.observation(document, station, units, origin(found, nws.NWS), zone)
            if at is None or shown.values[0] is None:
                continue
            if (self._now() - at).total_seconds() <= _FRESH_OBSERVATION:
                return shown
            if best is None or at > best[0]:
                best = at, shown
        if best is None:
            return None
        hours = (self._now() - best[0]).total_seconds() / 3600
        old = best[1].origin.model_copy(update={"stale": True, "reason": f"the station reported {hours:.0f} h ago"})
        return best[1].model_copy(update={"origin": old})

    async def air(self, place: Place, units: Units, hours: int, *, pollen: bool) -> AirQuality:
        days = min(7, max(2, math.ceil(hours / 24) + 1))
        found = await self.cache.get(ask.air_key(place, days, pollen=pollen))
        document = found.json()
        from_ = origin(found)
        now = reading(document, units, from_)
        if now is None:
            raise Unavailable("Open-Meteo sent an answer without the present.", "Try again in a moment.")
        hourly = _first(table(document, "hourly", units, from_, since=self._hour()), hours)
        index = now.values[now.names.index("european_aqi")] if "european_aqi" in now.names else None
        category = next(name for most, name in _EAQI if index <= most) if isinstance(index, int | float) else None
        return AirQuality(place=place.info(str(zone_of(document))), now=now, hourly=hourly, category=category)

    async def marine(self, place: Place, units: Units, hours: int, *, river: bool) -> Marine:
        days = min(7, max(2, math.ceil(hours / 24) + 1))
        found = await self.cache.get(ask.marine_key(place, days))
        document = found.json()
        from_ = origin(found)
        now = reading(document, units, from_)
        waves = _first(table(document, "hourly", units, from_, since=self._hour()), hours)
        at_sea = any(value is not None for values in waves.values for value in values)
        if now is not None and all(value is None for value in now.values):
            now = None
        shown = None
        if river:
            flood = await self.cache.get(ask.flood_key(place, 30))
            shown = table(flood.json(), "daily", units, origin(flood))
        return Marine(
            place=place.info(str(zone_of(document))),
            now=now if at_sea else None,
            table=waves if at_sea else None,
            river=shown,
            explanation="Waves and currents."
            if at_sea
            else "No sea here: the models have no water at this point. Pass coordinates off the coast.",
        )

    async def local_time(self, place: Place) -> LocalTime:
        """Which day it is at `place`."""
        notes: list[str] = []
        if place.timezone:
            zone = zone_of({"timezone": place.timezone})
        else:
            try:
                zone = zone_of((await self.cache.get(ask.current_key(place))).json())
            except Unavailable:
                zone, notes = UTC, ["[Times are UTC: the place's time zone could not be found out.]"]
        return LocalTime(zone, today(self.cache.clock(), zone), notes)

    async def history(self, place: Place, days: Days, here: LocalTime, units: Units, *, normals: bool) -> History:
        found = await self.cache.get(ask.archive_key(place, days))
        daily = table(found.json(), "daily", units, origin(found))
        notes = list(here.notes)
        if daily.values and any(item is None for values in daily.values for item in values):
            notes.append("[Values that are null are not known; the last days come with a delay of up to five days.]")
        normal = await self._normals(place, days, units) if normals else None
        return History(place=place.info(str(here.zone)), daily=daily, normals=normal, notes=notes)

    async def astronomy(self, place: Place, day: Day, here: LocalTime) -> Astronomy:
        return await in_thread(lambda stop: sky(place, day, here.zone, here.notes))

    # Parts of them

    async def _hourly(
        self, place: Place, groups: Sequence[Group], hours: int, model: Model, units: Units
    ) -> tuple[Table, tzinfo]:
        # A document of one length for all who ask for less.
        asked = next(step for step in (48, 168, 384) if hours <= step)
        found = await self.cache.get(ask.hourly_key(place, groups, asked, model))
        document = found.json()
        return _first(table(document, "hourly", units, origin(found), since=self._hour()), hours), zone_of(document)

    async def _daily(
        self, place: Place, groups: Sequence[Group], days: int, model: Model, units: Units
    ) -> tuple[Table, tzinfo]:
        asked = 7 if days <= 7 else 16
        found = await self.cache.get(ask.daily_key(place, groups, asked, model))
        document = found.json()
        zone = zone_of(document)
        shown = table(document, "daily", units, origin(found))
        # A document from before midnight begins with what is yesterday by now.
        first = next(
            (index for index, day in enumerate(shown.time) if day >= today(self.cache.clock(), zone).isoformat()), 0
        )
        return _first(shown, days, first), zone

    async def _normals(self, place: Place, days: Days, units: Units) -> Table:
        """Means over the years of reference, day by day; a leap day counts with the leap years."""
        columns: dict[str, dict[str, list[float]]] = {name: {} for name in _NORMAL_NAMES}
        said: dict[str, str] = {}
        last: list[Snapshot] = []
        at_once = anyio.CapacityLimiter(_AT_ONCE)

        async def one(year: int) -> None:
            async with at_once:
                found = await self.cache.get(ask.archive_key(place, days.starting(year), normal=True))
            last.append(found)
            document = found.json()
            shown = table(document, "daily", "metric", origin(found))
            for name, unit, values in zip(shown.names, shown.units, shown.values, strict=True):
                said[name] = unit
                for day, value in zip(shown.time, values, strict=True):
                    if isinstance(value, int | float):
                        columns.setdefault(name, {}).setdefault(day[5:], []).append(float(value))

        await _together(*(partial(one, year) for year in _NORMAL_YEARS))
        span = [days.first + timedelta(days=number) for number in range((days.last - days.first).days + 1)]
        shown = [
            convert(name, [_mean(columns[name].get(day.isoformat()[5:])) for day in span], said.get(name, ""), units)
            for name in _NORMAL_NAMES
        ]
        return Table(
            time=[day.isoformat()[5:] for day in span],
            names=list(_NORMAL_NAMES),
            units=[unit for unit, _ in shown],
            values=[values for _, values in shown],
            origin=origin(min(last, key=lambda item: (not item.stale, item.fetched_at))),
        )

    async def _point(self, place: Place) -> tuple[dict[str, Any], tzinfo] | None:
        """What the National Weather Service has of the point; None outside its coverage."""
        found = (await self.cache.get(ask.points_key(place))).json()
        if found is None:
            return None
        about: dict[str, Any] = found.get("properties") or {}
        if not {"gridId", "gridX", "gridY"} <= about.keys():
            raise Unavailable("The National Weather Service sent a point without its grid.", "Try again in a moment.")
        return about, zone_of({"timezone": about.get("timeZone")})

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self.cache.clock(), UTC)

    def _hour(self) -> float:
        """The beginning of this hour: what ended before it is no forecast any more."""
        now = self.cache.clock()
        return now - now % 3600


def _first(shown: Table, count: int, start: int = 0) -> Table:
    end = start + count
    return shown.model_copy(
        update={"time": shown.time[start:end], "values": [values[start:end] for values in shown.values]}
    )


def _mean(values: list[float] | None) -> float | None:
    return sum(values) / len(values) if values else None


async def _together(*work: Callable[[], Awaitable[Any]]) -> list[Any]:
    """The results of all; the first failure ends the others and is raised as it is."""
    results: list[Any] = [None] * len(work)
    failures: list[Problem] = []

    async def run(index: int, one: Callable[[], Awaitable[Any]]) -> None:
        try:
            results[index] = await one()
        except Problem as problem:
            failures.append(problem)
            tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        for index, one in enumerate(work):
            tasks.start_soon(run, index, one)
    if failures:
        raise failures[0]
    return results
