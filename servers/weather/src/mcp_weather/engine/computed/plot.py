"""A forecast as a picture: temperature, precipitation, wind. Drawn as SVG, which resvg turns into a PNG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as Xml

from mcp_weather.engine.computed.columns import Column
from mcp_weather.models import Table, Value

__all__ = ["SERIES", "draw_png", "draw_svg", "select_series"]

SERIES = ("temperature_2m", "precipitation", "precipitation_probability", "wind_speed_10m", "wind_gusts_10m")

# What the National Weather Service's forecast, which stands in for Open-Meteo's, calls them.
_NWS_NAMES = {"temperature_2m": "temperature", "wind_speed_10m": "wind_speed"}

_FONT = Path(__file__).with_name("DejaVuSans.ttf")
_TEMPERATURE_COLOR = "#c2410c"
_PRECIPITATION_COLOR = "#1d4ed8"
_WIND_COLOR = "#15803d"
_GRAY = "#6b7280"
_LIGHT_GRAY = "#e5e7eb"

# All positions and sizes are pixels from the top left.
_WIDTH = 1000
_HEIGHT = 700
_LEFT = 84
_RIGHT = 934
_BOTTOM = 656
_MAX_GRID_LINES = 6
# Up to so much precipitation the axis stays the same, so that a drizzle is not drawn as high as a downpour.
_LEAST_TOP_MM = 1.0
_LEAST_TOP_INCHES = 0.04
_MAX_TIME_LABELS = 14
_MIN_DAY_LABEL_WIDTH = 100
_HOUR = timedelta(hours=1)
_HALF_HOUR = timedelta(minutes=30)


def draw_png(table: Table, title: str) -> bytes:
    """Return a PNG of 1000 by 700 pixels with the `SERIES` of `table` over time; a gap is a gap."""
    from resvg_py import svg_to_bytes

    # The system's fonts draw the letters that ours lacks, where there are any.
    return svg_to_bytes(svg_string=draw_svg(table, title), font_files=[str(_FONT)], font_family="DejaVu Sans")


def select_series(table: Table) -> dict[str, Column]:
    """Return those of `SERIES` that `table` has, by their names here."""
    columns = {
        name: Column(name, unit, values)
        for name, unit, values in zip(table.names, table.units, table.values, strict=True)
    }
    selected: dict[str, Column] = {}
    for name in SERIES:
        column = columns.get(name) or columns.get(_NWS_NAMES.get(name, name))
        if column is not None:
            selected[name] = column
    return selected


def draw_svg(table: Table, title: str) -> str:
    """Return the picture as SVG."""
    picture = _Picture([datetime.fromisoformat(time) for time in table.time])
    series = _Series(table)
    picture.text(16, 30, title, size=19, anchor="start")
    source = f"{table.origin.source}, {table.origin.licence}"
    if table.origin.stale:
        source += f" - STALE, {table.origin.age_s} s old"
    picture.text(_WIDTH - 16, 46, source, size=10, anchor="end", fill=_GRAY)
    _draw_temperature(picture, series)
    _draw_precipitation(picture, series)
    _draw_wind(picture, series)
    picture.label_times()
    return Xml.tostring(picture.root, encoding="unicode")


def _draw_temperature(picture: _Picture, series: _Series) -> None:
    temperature = series.numbers("temperature_2m")
    axis = _axis_around(temperature)
    panel = picture.draw_panel(_Panel(picture, 60, 250, axis), f"Temperature, {series.unit('temperature_2m')}")
    panel.draw_line(temperature, stroke=_TEMPERATURE_COLOR, stroke_width="2.2")


def _draw_precipitation(picture: _Picture, series: _Series) -> None:
    precipitation = series.numbers("precipitation")
    unit = series.unit("precipitation")
    least_top = _LEAST_TOP_INCHES if unit == "inch" else _LEAST_TOP_MM
    most = max([least_top, *(value for value in precipitation if not math.isnan(value))])
    amount = _Panel(picture, 332, 152, _Axis(0, most * 1.15))
    picture.draw_panel(amount, f"Precipitation, {unit}")
    amount.draw_bars(precipitation, fill=_PRECIPITATION_COLOR)
    probability = _Panel(picture, amount.top, amount.height, _Axis(0, 100))
    probability.draw_line(
        series.numbers("precipitation_probability"),
        delay=_HALF_HOUR,
        stroke=_GRAY,
        stroke_width="1.2",
        stroke_dasharray="2 3",
    )
    for percent in (0, 25, 50, 75, 100):
        picture.text(_RIGHT + 8, probability.y(percent) + 4, str(percent), anchor="start", fill=_GRAY)
    picture.vertical_text(_WIDTH - 12, amount.top + amount.height / 2, "Chance, %", fill=_GRAY)


def _draw_wind(picture: _Picture, series: _Series) -> None:
    wind = series.numbers("wind_speed_10m")
    gusts = series.numbers("wind_gusts_10m")
    axis = _Axis(0, _axis_around([*gusts, *wind]).high)
    panel = picture.draw_panel(_Panel(picture, 504, 152, axis), f"Wind, {series.unit('wind_speed_10m')}")
    panel.draw_line(wind, stroke=_WIND_COLOR, stroke_width="1.8")
    panel.draw_line(gusts, delay=_HALF_HOUR, stroke=_WIND_COLOR, stroke_width="1.2", stroke_dasharray="6 3")
    _draw_legend(picture, _RIGHT - 140, "wind", dashes="none")
    _draw_legend(picture, _RIGHT - 68, "gusts", dashes="6 3")


def _draw_legend(picture: _Picture, x: float, label: str, *, dashes: str) -> None:
    picture.path(f"M{x} 493h22", stroke=_WIND_COLOR, stroke_width="1.6", stroke_dasharray=dashes)
    picture.text(x + 28, 497, label, anchor="start")


class _Series:
    """The numbers and units of a table's `SERIES`."""

    def __init__(self, table: Table) -> None:
        self._columns = select_series(table)
        self._length = len(table.time)

    def numbers(self, name: str) -> list[float]:
        """Return a series as numbers, NaN where it is unknown."""
        if name not in self._columns:
            return [math.nan] * self._length
        return [_as_float(value) for value in self._columns[name].values]

    def unit(self, name: str) -> str:
        """Return the unit of a series."""
        if name not in self._columns:
            return "unknown"
        return self._columns[name].unit


class _Axis(NamedTuple):
    """The least and the greatest value of an axis."""

    low: float
    high: float


class _Picture:
    """The paper, and where on it a moment is."""

    def __init__(self, moments: Sequence[datetime]) -> None:
        self.moments = _in_first_offset(moments)
        self._first = datetime.min
        last = datetime.max
        if self.moments:
            self._first = self.moments[0]
            last = self.moments[-1] + _HOUR
        self.hour_width = (_RIGHT - _LEFT) / ((last - self._first) / timedelta(hours=1))
        size = {"width": str(_WIDTH), "height": str(_HEIGHT), "viewBox": f"0 0 {_WIDTH} {_HEIGHT}"}
        self.root = Xml.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", **size})
        self._add("rect", width="100%", height="100%", fill="#ffffff")

    def x(self, moment: datetime) -> float:
        """Return where from left to right a moment is."""
        return _LEFT + self.hour_width * ((moment - self._first) / timedelta(hours=1))

    def path(self, moves: str, **style: str) -> None:
        """Draw the line of a pen that makes these moves."""
        self._add("path", d=moves, fill="none", stroke_linecap="round", stroke_linejoin="round", **style)

    def rect(self, **attributes: str | float) -> None:
        """Draw a rectangle."""
        self._add("rect", **attributes)

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: int = 12,
        anchor: str = "middle",
        fill: str = "#000000",
    ) -> Xml.Element:
        """Write a line.

        Args:
            anchor: which part of the text is at `x`: start, middle or end.
        """
        element = self._add("text", x=x, y=y, font_size=size, text_anchor=anchor, fill=fill)
        # XML has no way to write a control character.
        element.text = "".join(letter if letter.isprintable() else " " for letter in text)
        return element

    def vertical_text(self, x: float, y: float, text: str, *, fill: str = "#000000") -> None:
        """Write a line from bottom to top, with its middle at a point."""
        element = self.text(x, y, text, fill=fill)
        element.set("transform", f"rotate(-90 {x} {y})")

    def draw_panel(self, panel: _Panel, name: str) -> _Panel:
        """Draw the grid, the axis and the name of a panel."""
        axis = panel.axis
        step = _round_step(axis.high - axis.low, _MAX_GRID_LINES)
        for count in range(math.ceil(axis.low / step), math.floor(axis.high / step) + 1):
            y = panel.y(count * step)
            self.path(f"M{_LEFT} {y:.1f}H{_RIGHT}", stroke=_LIGHT_GRAY)
            self.text(_LEFT - 8, y + 4, f"{count * step:.10g}", anchor="end")
        for moment in self.moments[1:]:
            if moment.hour == 0:
                self.path(f"M{self.x(moment):.1f} {panel.top}v{panel.height}", stroke=_GRAY, stroke_opacity="0.5")
        self.path(f"M{_LEFT} {panel.top}v{panel.height}H{_RIGHT}", stroke=_GRAY)
        self.vertical_text(26, panel.top + panel.height / 2, name)
        return panel

    def label_times(self) -> None:
        """Write times below the last panel: as many as fit, and a day's name at its midnight."""
        step = _label_step_hours(len(self.moments))
        for number, moment in enumerate(self.moments):
            x = self.x(moment)
            if moment.hour % step == 0:
                self.path(f"M{x:.1f} {_BOTTOM}v4", stroke=_GRAY)
                self.text(x, _BOTTOM + 18, f"{moment:%H:%M}")
            has_room_for_day = (24 - moment.hour) * self.hour_width > _MIN_DAY_LABEL_WIDTH
            if moment.hour == 0 or (number == 0 and has_room_for_day):
                self.text(x, _BOTTOM + 35, f"{moment:%a %d %b}")

    def _add(self, tag: str, **attributes: str | float) -> Xml.Element:
        """Add an element; an underscore in the name of an attribute is a hyphen."""
        formatted: dict[str, str] = {}
        for name, value in attributes.items():
            formatted[name.replace("_", "-")] = _format_attribute(value)
        return Xml.SubElement(self.root, tag, formatted)


@dataclass(frozen=True)
class _Panel:
    """A part of the picture with an axis of its own."""

    picture: _Picture
    top: float
    height: float
    axis: _Axis

    def y(self, value: float) -> float:
        """Return where from top to bottom a value is."""
        return self.top + self.height * (self.axis.high - value) / (self.axis.high - self.axis.low)

    def draw_line(self, values: Sequence[float], *, delay: timedelta = timedelta(), **style: str) -> None:
        """Draw a line that is broken where values are unknown.

        Args:
            delay: from the beginning of an hour to where its value is drawn.
        """
        moments = [moment + delay for moment in self.picture.moments]
        points = zip(moments, values, strict=True)
        for is_unknown, run in groupby(points, key=lambda point: math.isnan(point[1])):
            if is_unknown:
                continue
            corners = [f"{self.picture.x(moment):.1f} {self.y(value):.1f}" for moment, value in run]
            if len(corners) == 1:
                # The round caps of a line of no length make it a dot.
                corners *= 2
            self.picture.path("M" + "L".join(corners), **style)

    def draw_bars(self, values: Sequence[float], **style: str) -> None:
        """Draw a bar for each value above zero, over the hour that begins at its time."""
        width = self.picture.hour_width * 0.9
        for moment, value in zip(self.picture.moments, values, strict=True):
            if value > 0:
                y = self.y(value)
                x = self.picture.x(moment + _HALF_HOUR) - width / 2
                self.picture.rect(x=x, y=y, width=width, height=self.top + self.height - y, **style)


def _in_first_offset(moments: Sequence[datetime]) -> list[datetime]:
    """Return `moments` in the offset of the first one: clocks that change would fold the axis."""
    return [moment.astimezone(moments[0].tzinfo) for moment in moments]


def _format_attribute(value: str | float) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)


def _as_float(value: Value) -> float:
    if isinstance(value, int | float):
        return float(value)
    return math.nan


def _axis_around(values: Sequence[float]) -> _Axis:
    """Return an axis with some air above and below `values`."""
    numbers = [value for value in values if not math.isnan(value)] or [0.0, 1.0]
    low = min(numbers)
    high = max(numbers)
    air = max((high - low) * 0.08, 0.5)
    return _Axis(low - air, high + air)


def _round_step(span: float, max_marks: int) -> float:
    """Return a round distance between at most so many marks: one, two or five times a power of ten."""
    power = 10.0 ** math.floor(math.log10(span / max_marks))
    return next(power * factor for factor in (1, 2, 5, 10) if span / (power * factor) <= max_marks)


def _label_step_hours(hours: int) -> int:
    """Return the hours between two labels, of which not too many stand below the picture."""
    for step in (1, 2, 3, 6, 12):
        if hours <= _MAX_TIME_LABELS * step:
            return step
    return 24
