"""Alerts, air, water, sky and the past, as tools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from mcp_batteries.concurrency.threads import run_in_thread
from mcp_batteries.errors import NotFound
from mcp_batteries.server.declaration.decorators import tool
from mcp_batteries.server.declaration.fields import Cursor
from mcp_weather.engine.alerts.answer import take_page
from mcp_weather.engine.answers.air_quality import fetch_air_quality
from mcp_weather.engine.answers.history import fetch_history
from mcp_weather.engine.answers.local_time import find_local_time
from mcp_weather.engine.answers.marine import fetch_marine
from mcp_weather.engine.computed.astronomy import compute_astronomy
from mcp_weather.engine.engine import Engine
from mcp_weather.engine.services.aviation import fetch_airport
from mcp_weather.models import Airport, AirQuality, Alerts, Astronomy, History, Marine
from mcp_weather.policy.airport import AirportCode
from mcp_weather.policy.place import Place
from mcp_weather.policy.policy import Policy
from mcp_weather.policy.units import Units
from mcp_weather.tools.arguments import Day, Hours, PlaceText, UnitSystem, note_limit

__all__ = ["ConditionTools"]

# Open-Meteo has the air and the sea of seven days, the first of which may be nearly over.
_MAX_HOURS = 144
_MAX_PAST_DAYS = 92
# Thirty years of more days would use up the minute of the free limit.
_MAX_NORMAL_DAYS = 14


@dataclass(frozen=True)
class ConditionTools:
    """The tools for all but forecasts.

    Attributes:
        units: of all values, unless a call says otherwise.
    """

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
        resolved_place = await self.policy.resolve_place(place)
        position = self.policy.parse_alerts_cursor(cursor, resolved_place)
        return take_page(await self.engine.alerts.fetch(resolved_place), position)

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
        resolved_place = await self.policy.resolve_place(place)
        parsed_units = self.policy.parse_units(units, self.units)
        air_quality = await fetch_air_quality(
            self.engine, resolved_place, parsed_units, min(hours, _MAX_HOURS), pollen=pollen
        )
        return note_limit(air_quality, hours, _MAX_HOURS)

    @tool("Airport weather", open_world=True)
    async def get_metar(self, place: PlaceText, units: UnitSystem = None) -> Airport:
        """Get METAR (measured) and TAF (forecast) of the airport nearest to `place`, or of an ICAO code (`LSZH`).

        Both as issued, METAR decoded too (wind in knots), with other airports near. For weather use `get_weather`.
        """
        parsed_units = self.policy.parse_aviation_units(units, self.units)
        code = self.policy.parse_airport_code(place)
        if code is None:
            return await fetch_airport(self.engine.cache, await self._resolve_airport(place), parsed_units)
        try:
            return await fetch_airport(self.engine.cache, code, parsed_units)
        except NotFound as problem:
            try:
                resolved_place = await self.policy.resolve_place(place)
            except NotFound:
                raise problem from None
            return await fetch_airport(self.engine.cache, resolved_place, parsed_units)

    async def _resolve_airport(self, text: str) -> Place | AirportCode:
        """Return the place that `text` means, else the airport whose code it may be in small letters."""
        try:
            return await self.policy.resolve_place(text)
        except NotFound:
            code = self.policy.parse_lowercase_airport_code(text)
            if code is None:
                raise
            return code

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
        resolved_place = await self.policy.resolve_place(place)
        parsed_units = self.policy.parse_units(units, self.units)
        marine = await fetch_marine(self.engine, resolved_place, parsed_units, min(hours, _MAX_HOURS), river=river)
        if marine.table is None:
            return marine
        return note_limit(marine, hours, _MAX_HOURS)

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
        resolved_place = await self.policy.resolve_place(place)
        local_time = await find_local_time(self.engine, resolved_place)
        max_days = _MAX_NORMAL_DAYS if normals else _MAX_PAST_DAYS
        days = self.policy.parse_past_days(start, end, today=local_time.today, max_days=max_days)
        parsed_units = self.policy.parse_units(units, self.units)
        return await fetch_history(self.engine, resolved_place, days, local_time, parsed_units, normals=normals)

    @tool("Sun and moon", open_world=True)
    async def get_astronomy(
        self,
        place: PlaceText,
        date: Annotated[Day | None, Field(description="YYYY-MM-DD; default: today there.")] = None,
    ) -> Astronomy:
        """Get sunrise, sunset, twilights, moonrise, moonset and moon phase of a day, past or to come.

        Computed, not observed; what does not happen, as in polar night, is null. For clouds use `get_forecast`.
        """
        resolved_place = await self.policy.resolve_place(place)
        local_time = await find_local_time(self.engine, resolved_place)
        day = self.policy.parse_astronomy_day(date, local_time.today, local_time.zone)
        return await run_in_thread(
            lambda cancel: compute_astronomy(resolved_place, day, local_time.zone, local_time.notes)
        )
