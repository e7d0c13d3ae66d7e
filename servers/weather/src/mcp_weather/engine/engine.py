"""The weather of a place: fetched through the cache, and turned into results."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import partial
from typing import Any

from mcp_batteries.errors import Problem, Unavailable
from mcp_batteries.limits import in_thread
from mcp_batteries.remote import Cache, Snapshot
from mcp_weather.engine.alerts.answer import page
from mcp_weather.engine.alerts.services import AlertServices
from mcp_weather.engine.answers.history import history
from mcp_weather.engine.computed.astronomy import sky
from mcp_weather.engine.computed.ensemble import spread
from mcp_weather.engine.computed.series import has_values, origin, reading, table, to_come, today, zone_of
from mcp_weather.engine.computed.summary import summary
from mcp_weather.engine.gather import attempt, together
from mcp_weather.engine.services import nws_documents
from mcp_weather.engine.services import queries as ask
from mcp_weather.engine.services.aviation import airport
from mcp_weather.engine.services.cap import objects
from mcp_weather.engine.services.nws import WeatherService
from mcp_weather.engine.services.queries import Group, Model
from mcp_weather.geography.geocoder_results import is_place
from mcp_weather.models import (
    Airport,
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
from mcp_weather.policy import DIRECTIONS, After, Day, Days, Place, Station, Units

__all__ = ["Engine", "LocalTime"]

_COAST_KM = (15, 40)
"""How far away the sea is looked for, in all directions."""
_ALERTS_BESIDE = 5
"""Alerts that are named beside the weather."""
_EAQI = ((20, "good"), (40, "fair"), (60, "moderate"), (80, "poor"), (100, "very poor"), (math.inf, "extremely poor"))
"""The European air quality index, as the European Environment Agency names its bands."""


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
        language: of place names and alerts.
    """

    def __init__(self, cache: Cache, *, language: str) -> None:
        self.cache, self._language = cache, language
        self.nws = WeatherService(cache)
        self._alerts = AlertServices(cache, self.nws, language)

    async def hits(self, name: str, languages: Sequence[str | None]) -> list[list[dict[str, Any]]]:
        """What the geocoder has for `name` in each of `languages`; None is the server's. It matches names of that
        language only (open-meteo/geocoding-api)."""
        asked = dict.fromkeys(language or self._language for language in languages)
        return await together(*(partial(self._hits, name, language) for language in asked))

    async def _hits(self, name: str, language: str) -> list[dict[str, Any]]:
        found = (await self.cache.get(ask.geocoding_key(name, language))).json()
        # No match is an answer without results.
        return [hit for hit in objects(found.get("results") or []) if is_place(hit)]

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
                return await self._alerts.keys(place)

    # What the tools answer

    async def weather(self, place: Place, units: Units, days: int) -> Weather:
        """Now, the next days and alerts; a part that can't be had is missing, and a note says why.

        Raises:
            Problem: none of them can be had.
        """
        heights: list[Any] = []
        now, daily, alerts, observed = await together(
            partial(attempt, lambda: self.now(place, units, heights)),
            partial(attempt, lambda: self._daily(place, ("basic",), days, "best_match", units)),
            lambda: self.alerts(place),
            partial(attempt, lambda: self.nws.observation(place, units)),
        )
        notes: list[str] = []
        zones: list[tzinfo] = []
        parts: dict[str, Any] = {}
        for name, what, found in (("now", "The present", now), ("daily", "The forecast by day", daily)):
            if isinstance(found, Problem):
                notes.append(f"[{what} is missing: {found}]")
            else:
                parts[name] = found[0]
                zones.append(found[1])
        if isinstance(daily, Problem) and nws_documents.may_cover(place):
            official = await attempt(lambda: self.nws.official(place, "daily", days, units))
            if not isinstance(official, Problem):
                parts["daily"] = official.tables["nws"]
                notes[-1] = f"[The days are the National Weather Service's forecast: {daily}]"
        if not isinstance(observed, Problem):
            parts["observation"] = observed
        if not any(parts.values()) and alerts.status not in ("alerts", "none"):
            raise now if isinstance(now, Problem) else Unavailable("No source answered.", "Try again in a moment.")
        # What they say in full is for `get_alerts`.
        brief = [
            alert.model_copy(
                update={"description": None, "instruction": None, "headline": None, "area": (alert.area or "")[:100]}
            )
            for alert in alerts.alerts[:_ALERTS_BESIDE]
        ]
        if len(alerts.alerts) > len(brief):
            notes.append(f"[{len(alerts.alerts) - len(brief)} more alerts: `get_alerts`]")
        zone = str(zones[0]) if zones else alerts.place.timezone
        return Weather(
            place=place.info(zone, elevation=next(iter(heights), None)),
            notes=notes,
            alerts=alerts.model_copy(update={"alerts": brief}),
            resources=[place.uri(kind) for kind in ("now", "daily", "alerts")],
            **parts,
        )

    async def alerts(self, place: Place) -> Alerts:
        """What the services that cover `place` warn of."""
        return await self._alerts.alerts(place)

    async def now(self, place: Place, units: Units, heights: list[Any] | None = None) -> tuple[Reading, tzinfo]:
        """The present; the height of the model's ground there is added to `heights`."""
        found = await self.cache.get(ask.current_key(place))
        document = found.json()
        if heights is not None:
            heights.append(document.get("elevation"))
        now = reading(document, units, origin(found))
        if now is None:
            raise Unavailable("Open-Meteo sent an answer without present values.", "Try again in a moment.")
        return now, zone_of(document)

    async def forecast(
        self, place: Place, step: str, groups: Sequence[Group], span: int, models: Sequence[Model], units: Units
    ) -> Forecast:
        """`span` hours or days of each of `models`. Where the default one can't be had, the US has another source."""
        if list(models) == ["best_match"] and nws_documents.may_cover(place):
            try:
                return await self._forecast(place, step, groups, span, models, units)
            except Unavailable as problem:
                found = await attempt(lambda: self.nws.official(place, step, span, units))
                if isinstance(found, Problem):
                    raise
                note = f"[This is the National Weather Service's forecast, which has fewer variables: {problem}]"
                return found.model_copy(update={"notes": [note, *found.notes]})
        return await self._forecast(place, step, groups, span, models, units)

    async def alerts_page(self, place: Place, after: After) -> Alerts:
        """The worst alerts first, as many as fit."""
        return page(await self.alerts(place), after.position)

    async def day(self, place: Place, groups: Sequence[Group], day: Day, here: LocalTime, units: Units) -> Forecast:
        """The hours of one day."""
        end = datetime.combine(day.date + timedelta(days=1), time.min, here.zone).timestamp()
        # A day of two clocks has 23 or 25 of them.
        hours = math.ceil(end / 3600 - self.cache.clock() // 3600)
        found = await self.forecast(place, "hourly", groups, hours, ("best_match",), units)
        tables = {name: _of_day(shown, day.date.isoformat()) for name, shown in found.tables.items()}
        name, shown = next(iter(tables.items()))
        if not shown.time:
            last = found.tables[name].time[-1]
            raise Unavailable(
                f"There is no forecast by hour of {day.date}: that of {shown.origin.source} ends at {last}.",
                "Ask for an earlier day, or try again later.",
            )
        return found.model_copy(update={"tables": tables, "summary": summary(shown)})

    async def quarters(self, place: Place, hours: int, units: Units) -> Forecast:
        """Rain and wind by quarters of an hour."""
        found = await self.cache.get(ask.quarters_key(place, 96))
        document = found.json()
        whole = table(document, "minutely_15", units, origin(found), now=self.cache.clock())
        shown = _first(to_come(whole, found), 4 * hours)
        return Forecast(
            place=place.info(str(zone_of(document)), elevation=document.get("elevation")),
            step="15-minute",
            tables={"best_match": shown},
            summary=summary(shown, "quarters of an hour"),
            notes=["[Quarters are computed in Central Europe and North America, and elsewhere between hours.]"],
        )

    async def with_spread(self, found: Forecast, place: Place, hours: int, units: Units) -> Forecast:
        """A forecast by hour, and how sure it is."""
        try:
            answer = await self.cache.get(ask.ensemble_key(place, 2 if hours <= 24 else 8))
            members = spread(answer.json(), units, origin(answer), now=self.cache.clock())
            shown = _first(to_come(members, answer), hours)
        except Problem as problem:
            return found.model_copy(update={"notes": [*found.notes, f"[The ensemble is missing: {problem}]"]})
        said = f"[Eight in ten of the members of the ensemble {ask.ENSEMBLE} are between p10 and p90.]"
        tables = {**found.tables, "ensemble": shown}
        return found.model_copy(update={"tables": tables, "notes": [*found.notes, said]})

    async def airport(self, where: Place | Station, units: Units) -> Airport:
        """See `aviation.airport`."""
        return await airport(self.cache, where, units)

    async def official(self, place: Place, step: str, span: int, units: Units) -> Forecast:
        """See `WeatherService.official`."""
        return await self.nws.official(place, step, span, units)

    async def _forecast(
        self, place: Place, step: str, groups: Sequence[Group], span: int, models: Sequence[Model], units: Units
    ) -> Forecast:
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

        await together(*(partial(one, model) for model in models))
        if not tables:
            raise Unavailable(f"None of the {len(models)} models answered.", "Try again in a moment.")
        ordered = {model: tables[model] for model in models if model in tables}
        for model, found in ordered.items():
            if empty := [
                name
                for name, values in zip(found.names, found.values, strict=True)
                if not any(item is not None for item in values)
            ]:
                notes.append(f"[{model} has no {', '.join(empty)} here]")
        return Forecast(
            place=place.info(str(zone)),
            step="hourly" if step == "hourly" else "daily",
            tables=ordered,
            summary=summary(next(iter(ordered.values()))) if step == "hourly" else (),
            notes=notes,
        )

    async def air(self, place: Place, units: Units, hours: int, *, pollen: bool) -> AirQuality:
        days = min(7, max(2, math.ceil(hours / 24) + 1))
        found = await self.cache.get(ask.air_key(place, days, pollen=pollen))
        document = found.json()
        from_ = origin(found)
        now = reading(document, units, from_)
        if now is None:
            raise Unavailable("Open-Meteo sent an answer without present values.", "Try again in a moment.")
        hourly = _first(to_come(table(document, "hourly", units, from_, now=self.cache.clock()), found), hours)
        index = now.values[now.names.index("european_aqi")] if "european_aqi" in now.names else None
        category = next(name for most, name in _EAQI if index <= most) if isinstance(index, int | float) else None
        return AirQuality(place=place.info(str(zone_of(document))), now=now, hourly=hourly, category=category)

    async def marine(self, place: Place, units: Units, hours: int, *, river: bool) -> Marine:
        """Waves and currents at the place, else at the nearest sea within `_COAST_KM`; a river's discharge if asked."""
        days = min(7, max(2, math.ceil(hours / 24) + 1))
        notes: list[str] = []
        found = await self.cache.get(ask.marine_key(place, days))
        zone = zone_of(found.json())
        at_sea = has_values(found.json(), "hourly")
        missed: list[Problem] = []
        for km in () if at_sea or river else _COAST_KM:
            around = [(direction, place.beside(km, direction)) for direction in DIRECTIONS]
            tried = await together(
                *(partial(attempt, partial(self.cache.get, ask.marine_key(point, days))) for _, point in around)
            )
            for (direction, point), answer in zip(around, tried, strict=True):
                if isinstance(answer, Problem):
                    missed.append(answer)
                elif not at_sea and has_values(answer.json(), "hourly"):
                    found, at_sea = answer, True
                    notes.append(f"[No sea at the place itself: this is {km} km to the {direction}, at {point.point}.]")
            if at_sea:
                break
        document, from_ = found.json(), origin(found)

        async def waves() -> Table:
            whole = table(document, "hourly", units, from_, now=self.cache.clock())
            return _first(to_come(whole, found), hours)

        async def discharge() -> Table:
            return self._days(await self.cache.get(ask.flood_key(place, 30)), units)

        tables = {"The sea by hour": waves} if at_sea else {}
        tables |= {"The river's discharge": discharge} if river else {}
        shown: dict[str, Table] = {}
        for what, work in tables.items():
            part = await attempt(work)
            if isinstance(part, Problem):
                notes.append(f"[{what} is missing: {part}]")
            else:
                shown[what] = part
        now = reading(document, units, from_)
        return Marine(
            place=place.info(str(zone)),
            now=now if at_sea and now and any(value is not None for value in now.values) else None,
            table=shown.get("The sea by hour"),
            river=shown.get("The river's discharge"),
            notes=notes,
            explanation="Waves and currents." if at_sea else _no_sea(missed),
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
        return await history(self.cache, place, days, here.zone, here.notes, units, normals=normals)

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
        shown = table(document, "hourly", units, origin(found), now=self.cache.clock())
        return _first(to_come(shown, found), hours), zone_of(document)

    async def _daily(
        self, place: Place, groups: Sequence[Group], days: int, model: Model, units: Units
    ) -> tuple[Table, tzinfo]:
        asked = 7 if days <= 7 else 16
        found = await self.cache.get(ask.daily_key(place, groups, asked, model))
        return _first(self._days(found, units), days), zone_of(found.json())

    def _days(self, found: Snapshot, units: Units) -> Table:
        """The days to come of a document; one from before midnight begins with what is yesterday by now."""
        shown = table(found.json(), "daily", units, origin(found))
        here = today(self.cache.clock(), zone_of(found.json())).isoformat()
        return to_come(_first(shown, len(shown.time), sum(day < here for day in shown.time)), found)


def _no_sea(missed: Sequence[Problem]) -> str:
    """What is said where no sea was found, and so many looks around failed."""
    if not missed:
        return "No sea here: the models have no water at this point. Pass coordinates off the coast."
    many = f"{len(missed)} of {len(_COAST_KM) * len(DIRECTIONS)} points"
    return f"No sea at the point itself; whether there is some near is not known, {many} can't be asked: {missed[0]}"


def _of_day(shown: Table, day: str) -> Table:
    kept = [index for index, time in enumerate(shown.time) if time.startswith(day)]
    return shown.model_copy(
        update={
            "time": [shown.time[index] for index in kept],
            "values": [[values[index] for index in kept] for values in shown.values],
        }
    )


def _first(shown: Table, count: int, start: int = 0) -> Table:
    end = start + count
    return shown.model_copy(
        update={"time": shown.time[start:end], "values": [values[start:end] for values in shown.values]}
    )
