"""Alerts, air, water, sky and the past, as tools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from mcp_batteries.errors import NotFound
from mcp_batteries.server.declare import tool
from mcp_batteries.server.fields import Cursor
from mcp_weather.engine.engine import Engine
from mcp_weather.models import Airport, AirQuality, Alerts, Astronomy, History, Marine
from mcp_weather.policy import Policy, Units
from mcp_weather.tools.arguments import Day, Hours, PlaceText, UnitSystem, at_most

__all__ = ["ConditionTools"]

_MOST_HOURS = 144
"""Of what Open-Meteo tells of seven days, the first of which may be nearly over."""
_MOST_DAYS = 92
_MOST_NORMAL_DAYS = 14
"""Days of one call with normals: thirty years of more would use up the minute of the free limit."""


@dataclass(frozen=True)
class ConditionTools:
    policy: Policy
    engine: Engine
    units: Units

    @tool("Alerts", open_world=True)
    async def get_alerts(
        self,
        place: PlaceText,
        cursor: Cursor = None,
    ) -> Alerts:
        """Get official weather warnings in force (US, Canada, Europe), worst first.

        `status` is alerts, none, not_covered (no service there) or unavailable: an empty list alone does not mean none.
        For weather and alerts at once use `get_weather`.
        """
        where = await self.policy.place(place)
        return await self.engine.alerts_page(where, self.policy.alerts_after(cursor, where))

    @tool("Air quality", open_world=True)
    async def get_air_quality(
        self,
        place: PlaceText,
        hours: Hours = 24,
        pollen: Annotated[bool, Field(description="Europe only.")] = False,
        units: UnitSystem = None,
    ) -> AirQuality:
        """Get air quality now and by hour: indices, pollutants and, if asked for, `pollen`.

        From a model, not measured at a station. For other weather use `get_weather`.
        """
        where = await self.policy.place(place)
        shown = self.policy.units(units, self.units)
        found = await self.engine.air(where, shown, min(hours, _MOST_HOURS), pollen=pollen)
        return at_most(found, hours, _MOST_HOURS)

    @tool("Airport weather", open_world=True)
    async def get_metar(self, place: PlaceText, units: UnitSystem = None) -> Airport:
        """Get METAR (measured) and TAF (forecast) of the airport nearest to `place`, or of an ICAO code (`LSZH`).

        Both as issued, METAR decoded too, with other airports near. For a place's weather use `get_weather`.
        """
        shown = self.policy.units(units, self.units)
        if station := self.policy.station(place):
            try:
                return await self.engine.airport(station, shown)
            except NotFound as problem:
                try:
                    where = await self.policy.place(place)
                except NotFound:
                    raise problem from None
                return await self.engine.airport(where, shown)
        try:
            where = await self.policy.place(place)
        except NotFound:
            if (station := self.policy.station_in_any_case(place)) is None:
                raise
            return await self.engine.airport(station, shown)
        return await self.engine.airport(where, shown)

    @tool("Sea and rivers", open_world=True)
    async def get_marine(
        self,
        place: PlaceText,
        hours: Hours = 24,
        river: Annotated[bool, Field(description="Also river discharge, 30 days.")] = False,
        units: UnitSystem = None,
    ) -> Marine:
        """Get waves, swell, sea temperature and currents, now and by hour; with `river` a river's discharge too.

        From a model, at the nearest sea within 40 km, else it says that there is none. For wind and rain use
        `get_forecast`.
        """
        where = await self.policy.place(place)
        shown = self.policy.units(units, self.units)
        found = await self.engine.marine(where, shown, min(hours, _MOST_HOURS), river=river)
        return at_most(found, hours, _MOST_HOURS) if found.table else found

    @tool("Past weather", open_world=True, seconds=120.0)
    async def get_history(
        self,
        place: PlaceText,
        start: Day,
        end: Annotated[Day | None, Field(description="Default: `start`; 92 days at most.")] = None,
        normals: Annotated[bool, Field(description="Compare with 1991-2020; then 14 days at most.")] = False,
        units: UnitSystem = None,
    ) -> History:
        """Get the weather of past days since 1940, day by day.

        The last days are the forecasts' own, as a note says. For today use `get_weather`, for days to come
        `get_forecast`.
        """
        where = await self.policy.place(place)
        here = await self.engine.local_time(where)
        most = _MOST_NORMAL_DAYS if normals else _MOST_DAYS
        days = self.policy.past_days(start, end, today=here.today, most=most)
        return await self.engine.history(where, days, here, self.policy.units(units, self.units), normals=normals)

    @tool("Sun and moon", open_world=True)
    async def get_astronomy(
        self,
        place: PlaceText,
        date: Annotated[Day | None, Field(description="YYYY-MM-DD; default: today there.")] = None,
    ) -> Astronomy:
        """Get sunrise, sunset, twilights, moonrise, moonset and moon phase of a day, past or to come.

        Computed, not observed; what does not happen, as in polar night, is null. For clouds use `get_forecast`.
        """
        where = await self.policy.place(place)
        here = await self.engine.local_time(where)
        return await self.engine.astronomy(where, self.policy.sky_day(date, here.today, here.zone), here)
