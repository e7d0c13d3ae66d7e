"""The weather now and to come, as tools."""

from __future__ import annotations

import base64
import math
from dataclasses import dataclass
from typing import Annotated, Literal

from mcp_types import CallToolResult, ImageContent, TextContent
from pydantic import Field

from mcp_batteries.errors import Invalid
from mcp_batteries.limits import in_thread
from mcp_batteries.server.declare import tool
from mcp_batteries.server.views import FORECAST
from mcp_weather.engine.computed import plot
from mcp_weather.engine.engine import Engine
from mcp_weather.engine.services.queries import Group, Model
from mcp_weather.models import Forecast, Picture, Weather
from mcp_weather.policy import Policy, Units
from mcp_weather.tools.arguments import Day, Groups, Hours, Models, PlaceText, UnitSystem, at_most

__all__ = ["ForecastTools"]

_PLOTTED: tuple[Group, ...] = ("basic", "wind")
_MOST_HOURS = 168
_QUARTER_HOURS, _MOST_QUARTER_HOURS = 6, 24
_BASIC: list[Group] = ["basic"]
_BEST: list[Model] = ["best_match"]


@dataclass(frozen=True)
class ForecastTools:
    policy: Policy
    engine: Engine
    units: Units

    @tool("Weather", open_world=True, view=FORECAST)
    async def get_weather(
        self, place: PlaceText, days: Annotated[int, Field(ge=1, le=16)] = 3, units: UnitSystem = None
    ) -> Weather:
        """Get the weather now, the next days and alerts in one call.

        Begin here. The values are a model's, in the US also those of a station. For hours use `get_forecast`, for past
        days `get_history`.
        """
        where = await self.policy.place(place)
        return await self.engine.weather(where, self.policy.units(units, self.units), days)

    @tool("Forecast", open_world=True, view=FORECAST)
    async def get_forecast(
        self,
        place: PlaceText,
        step: Literal["hourly", "daily", "15-minute"] | None = None,
        hours: Annotated[Hours | None, Field(description="Default: 24, or 6 by 15 minutes.")] = None,
        days: Annotated[int | None, Field(ge=1, le=16, description="Default: 7.")] = None,
        day: Annotated[Day | None, Field(description="The hours of one day: YYYY-MM-DD, `tomorrow`.")] = None,
        variables: Groups = _BASIC,
        models: Models = _BEST,
        spread: Annotated[bool, Field(description="Also how certain: p10, median, p90 of an ensemble.")] = False,
        source: Annotated[Literal["open-meteo", "nws"], Field(description="nws: official, US only.")] = "open-meteo",
        units: UnitSystem = None,
    ) -> Forecast:
        """Get a forecast by hour, by day or by 15 minutes (rain and gusts), with sums and extremes.

        Pass `hours`, `days` or one `day`; several `models`, or `spread`, tell how certain it is. Times are local to the
        place. For the weather now use `get_weather`, for past days `get_history`.
        """
        where = await self.policy.place(place)
        wanted_units = self.policy.units(units, self.units)
        if hours and days:
            raise Invalid("`hours` and `days` can't be used together.", "Pass one of them.")
        if spread and (day is not None or days or step not in (None, "hourly") or source == "nws"):
            raise Invalid("`spread` goes with `hours` only.", "Leave out `day`, `days`, `step` and `source`.")
        if step == "15-minute":
            if source == "nws" or models != _BEST or variables != _BASIC or days or day:
                raise Invalid("A forecast by quarters of an hour has rain and gusts only.", "Pass `hours` alone.")
            span = hours or _QUARTER_HOURS
            found = await self.engine.quarters(where, min(span, _MOST_QUARTER_HOURS), wanted_units)
            return at_most(found, span, _MOST_QUARTER_HOURS)
        if day is not None:
            if source == "nws" or models != _BEST or hours or days or step == "daily":
                raise Invalid("`day` goes with `variables` and `units` only.", "Leave the other arguments out.")
            here = await self.engine.local_time(where)
            wanted = self.policy.forecast_day(day, here.today)
            return await self.engine.day(where, variables, wanted, here, self.policy.units(units, self.units))
        step = step or ("daily" if days and not hours else "hourly")
        if step == "hourly":
            span = hours or min(24 * (days or 1), _MOST_HOURS)
        else:
            span = days or (math.ceil(hours / 24) if hours else 7)
        if source == "nws":
            if models != _BEST or variables != _BASIC:
                raise Invalid(
                    "`nws` has no `models` and no `variables` to choose.", "Leave them out, or leave out `source`."
                )
            found = await self.engine.official(where, step, span, wanted_units)
        else:
            unique = list(dict.fromkeys(models))
            found = await self.engine.forecast(where, step, variables, span, unique, wanted_units)
        if spread:
            return await self.engine.with_spread(found, where, span, wanted_units)
        asked = 24 * (days or 0) if step == "hourly" else 0
        return at_most(found, asked, _MOST_HOURS, " For more days pass `step` daily.")

    @tool("Plot a forecast", open_world=True)
    async def plot_forecast(
        self, place: PlaceText, hours: Hours = 48, units: UnitSystem = None
    ) -> Picture | CallToolResult:
        """Plot temperature, precipitation and wind of the next hours as a picture for people.

        The answer is a PNG, without the figures: for those use `get_forecast`.
        """
        where = await self.policy.place(place)
        found = await self.engine.forecast(
            where, "hourly", _PLOTTED, hours, ("best_match",), self.policy.units(units, self.units)
        )
        table = next(iter(found.tables.values()))
        drawn = await in_thread(lambda stop: plot.png(table, where.name), what="Plotting")
        picture = Picture(place=found.place, hours=len(table.time), series=list(plot.told(table)), origin=table.origin)
        return CallToolResult(
            content=[
                TextContent(type="text", text=picture.text() + "\n"),
                ImageContent(type="image", data=base64.b64encode(drawn).decode(), mime_type="image/png"),
            ],
            structured_content=picture.model_dump(mode="json", exclude_none=True),
        )
