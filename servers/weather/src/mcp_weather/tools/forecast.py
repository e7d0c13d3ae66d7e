"""The weather now and to come, as tools."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from mcp_types import CallToolResult, ImageContent, TextContent
from pydantic import Field

from mcp_batteries.concurrency.threads import run_in_thread
from mcp_batteries.errors import Invalid
from mcp_batteries.server.declaration.decorators import tool
from mcp_batteries.server.declaration.trusted import default
from mcp_batteries.server.declaration.views import FORECAST
from mcp_weather.engine.answers.forecasts import (
    ForecastQuery,
    add_spread,
    fetch_day,
    fetch_forecast,
    fetch_quarter_hours,
)
from mcp_weather.engine.answers.overview import fetch_overview
from mcp_weather.engine.computed import plot
from mcp_weather.engine.engine import Engine
from mcp_weather.engine.requests.queries import Group, Model
from mcp_weather.models import Forecast, Picture, Weather
from mcp_weather.policy.days import WrittenDay
from mcp_weather.policy.place import Place
from mcp_weather.policy.units import Units
from mcp_weather.tools.arguments import DayText, Groups, Hours, Models, SomePlace, SomeUnits, note_limit

__all__ = ["get_forecast", "get_weather", "plot_forecast"]

_PLOTTED_GROUPS: tuple[Group, ...] = ("basic", "wind")
_DEFAULT_GROUPS: list[Group] = ["basic"]
_DEFAULT_MODELS: list[Model] = ["best_match"]
_DEFAULT_DAYS = 7
_MAX_HOURS = 168
_DEFAULT_QUARTERED_HOURS = 6
_MAX_QUARTERED_HOURS = 24

Step = Literal["hourly", "daily", "15-minute"]
ForecastSource = Literal["open-meteo", "nws"]


@dataclass(frozen=True)
class _Arguments:
    """What a caller of `get_forecast` passed."""

    step: Step | None
    hours: int | None
    days: int | None
    day: WrittenDay | None
    groups: Sequence[Group]
    models: Sequence[Model]
    spread: bool
    source: ForecastSource

    @property
    def has_choices(self) -> bool:
        """Whether variables, models or a source were chosen."""
        return self.source == "nws" or self.models != _DEFAULT_MODELS or self.groups != _DEFAULT_GROUPS

    @property
    def chosen_step(self) -> Literal["hourly", "daily"]:
        """The step of a forecast that is not by quarters of an hour."""
        if self.step == "daily" or (self.step is None and self.days and not self.hours and not self.spread):
            return "daily"
        return "hourly"

    @property
    def span(self) -> int:
        """The hours or days of a forecast that is not by quarters of an hour."""
        if self.chosen_step == "hourly":
            return self.hours or min(24 * (self.days or 1), _MAX_HOURS)
        if self.days:
            return self.days
        if self.hours:
            return math.ceil(self.hours / 24)
        return _DEFAULT_DAYS

    @property
    def requested_hours(self) -> int:
        """The hours of the days that were asked for by hour; 0 if none were."""
        if self.chosen_step == "hourly" and self.days:
            return 24 * self.days
        return 0

    def validate(self) -> None:
        """Refuse arguments that exclude each other.

        Raises:
            Invalid: some do.
        """
        if self.hours and self.days and self.hours != 24 * self.days:
            raise Invalid("`hours` and `days` can't be used together.", "Pass one of them.")
        if self.spread:
            self._validate_spread()
        if self.step == "15-minute":
            self._validate_quarter_hours()
        elif self.day is not None:
            self._validate_day()
        elif self.source == "nws" and (self.models != _DEFAULT_MODELS or self.groups != _DEFAULT_GROUPS):
            raise Invalid(
                "`nws` has no `models` and no `variables` to choose.", "Leave them out, or leave out `source`."
            )

    def _validate_spread(self) -> None:
        if self.step not in (None, "hourly") or self.source == "nws":
            raise Invalid(
                "`spread` is known by hour only, and not of `nws`.",
                "Leave out `step` and `source`, or leave out `spread`.",
            )

    def _validate_quarter_hours(self) -> None:
        if self.has_choices or self.days or self.day:
            raise Invalid(
                "A forecast by quarters of an hour has rain and gusts of the next hours only.", "Pass `hours` alone."
            )

    def _validate_day(self) -> None:
        if self.source == "nws" or self.hours or self.days or self.step == "daily":
            raise Invalid(
                "`day` gives the hours of one day, so it goes with no `hours`, `days`, `source` or daily `step`.",
                "Leave them out.",
            )


@tool("Weather", open_world=True, view=FORECAST)
async def get_weather(
    engine: Engine,
    *,
    place: SomePlace,
    days: Annotated[int, Field(ge=1, le=16)] = 3,
    units: SomeUnits = default(""),
) -> Weather:
    """Get the weather now, the next days and alerts in one call.

    Begin here. The values are a model's, in the US also those of a station. For hours use `get_forecast`, for past
    days `get_history`.
    """
    return await fetch_overview(engine, place, units, days)


@tool("Forecast", open_world=True, view=FORECAST)
async def get_forecast(
    engine: Engine,
    *,
    place: SomePlace,
    step: Step | None = None,
    hours: Annotated[Hours | None, Field(description="Default: 24, or 6 by 15 minutes.")] = None,
    days: Annotated[int | None, Field(ge=1, le=16, description="Default: 7.")] = None,
    day: Annotated[DayText | None, Field(description="One day by hour: YYYY-MM-DD, `tomorrow`, `tonight`.")] = None,
    variables: Groups = _DEFAULT_GROUPS,
    models: Models = _DEFAULT_MODELS,
    spread: Annotated[bool, Field(description="Also how certain: p10, median, p90 of an ensemble.")] = False,
    source: Annotated[ForecastSource, Field(description="nws: official, US only.")] = "open-meteo",
    units: SomeUnits = default(""),
) -> Forecast:
    """Get a forecast by hour, by day or by 15 minutes (rain and gusts), with sums and extremes.

    Pass `hours`, `days` or `day`; by 15 minutes `hours` alone. Several `models`, or `spread`, tell how certain it is.
    Times are the place's. For the weather now use `get_weather`, for past days `get_history`.
    """
    arguments = _Arguments(step, hours, days, day, variables, models, spread, source)
    arguments.validate()
    if step == "15-minute":
        quartered_hours = hours or _DEFAULT_QUARTERED_HOURS
        forecast = await fetch_quarter_hours(engine, place, min(quartered_hours, _MAX_QUARTERED_HOURS), units)
        return note_limit(forecast, quartered_hours, _MAX_QUARTERED_HOURS)
    if day is not None:
        forecast = await fetch_day(engine, place, variables, day, units, list(dict.fromkeys(models)))
    else:
        forecast = await _fetch_span(engine, place, arguments, units)
    if spread:
        forecast = await add_spread(engine, forecast, place, units)
    return note_limit(forecast, arguments.requested_hours, _MAX_HOURS, " For more days pass `step` daily.")


async def _fetch_span(engine: Engine, place: Place, arguments: _Arguments, units: Units) -> Forecast:
    """Return the next hours or days, from the models or from the Weather Service."""
    step = arguments.chosen_step
    if arguments.source == "nws":
        return await engine.nws.fetch_forecast(place, step, arguments.span, units)
    models = list(dict.fromkeys(arguments.models))
    query = ForecastQuery(place, step, arguments.groups, arguments.span, units, models)
    return await fetch_forecast(engine, query)


@tool("Plot a forecast", open_world=True)
async def plot_forecast(
    engine: Engine, *, place: SomePlace, hours: Hours = 48, units: SomeUnits = default("")
) -> Picture | CallToolResult:
    """Plot temperature, precipitation and wind of the next hours as a picture for people.

    The answer is a PNG, without the figures: for those use `get_forecast`.
    """
    forecast = await fetch_forecast(engine, ForecastQuery(place, "hourly", _PLOTTED_GROUPS, hours, units))
    table = next(iter(forecast.tables.values()))
    png = await run_in_thread(lambda cancel: plot.draw_png(table, place.name), description="Plotting")
    picture = Picture(
        place=forecast.place,
        hours=len(table.time),
        series=list(plot.select_series(table)),
        origin=table.origin,
    )
    return CallToolResult(
        content=[
            TextContent(type="text", text=picture.text() + "\n"),
            ImageContent(type="image", data=base64.b64encode(png).decode(), mime_type="image/png"),
        ],
        structured_content=picture.model_dump(mode="json", exclude_none=True),
    )
