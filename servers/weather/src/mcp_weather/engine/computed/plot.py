"""A forecast as a picture: temperature, precipitation, wind. Drawn as SVG, which resvg turns into a PNG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path
from xml.etree import ElementTree as Xml

from mcp_weather.models import Table, Value

__all__ = ["SERIES", "png", "svg", "told"]

SERIES = ("temperature_2m", "precipitation", "precipitation_probability", "wind_speed_10m", "wind_gusts_10m")

_OTHERWISE = {"temperature_2m": "temperature", "wind_speed_10m": "wind_speed"}
"""What the National Weather Service's forecast, which stands in for Open-Meteo's, calls them."""

_WARM, _WET, _WIND, _QUIET, _FAINT = "#c2410c", "#1d4ed8", "#15803d", "#6b7280", "#e5e7eb"
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _BOTTOM = 1000, 700, 84, 934, 656
_FONT = Path(__file__).with_name("DejaVuSans.ttf")


def png(table: Table, title: str) -> bytes:
    """`table` with `SERIES` over time as a PNG of 1000 by 700 pixels; a gap is a gap."""
    from resvg_py import svg_to_bytes

    # The system's fonts draw the letters that ours lacks, where there are any.
    return svg_to_bytes(svg_string=svg(table, title), font_files=[str(_FONT)], font_family="DejaVu Sans")


def told(table: Table) -> dict[str, tuple[str, Sequence[Value]]]:
    """Unit and values of each of `SERIES` that `table` has."""
    there = {name: (unit, values) for name, unit, values in zip(table.names, table.units, table.values, strict=True)}
    named = {name: name if name in there else _OTHERWISE.get(name, name) for name in SERIES}
    return {name: there[theirs] for name, theirs in named.items() if theirs in there}


def svg(table: Table, title: str) -> str:
    picture = _Picture([datetime.fromisoformat(time) for time in table.time])
    known = told(table)
    columns = {name: _floats(known[name][1] if name in known else [None] * len(table.time)) for name in SERIES}
    units = {name: known[name][0] if name in known else "unknown" for name in SERIES}
    picture.text(16, 30, title, size=19, anchor="start")
    note = f"{table.origin.source}, {table.origin.licence}"
    stale = f" - STALE, {table.origin.age_s} s old" if table.origin.stale else ""
    picture.text(_WIDTH - 16, 46, note + stale, size=10, anchor="end", fill=_QUIET)

    heat = picture.panel(60, 250, *_span(columns["temperature_2m"]), f"Temperature, {units['temperature_2m']}")
    heat.line(columns["temperature_2m"], stroke=_WARM, stroke_width="2.2")

    most = max([1.0, *(value for value in columns["precipitation"] if not math.isnan(value))])
    rain = picture.panel(332, 152, 0, most * 1.15, f"Precipitation, {units['precipitation']}")
    rain.bars(columns["precipitation"], fill=_WET)
    chance = _Panel(picture, rain.top, rain.height, 0, 100)
    chance.line(columns["precipitation_probability"], stroke=_QUIET, stroke_width="1.2", stroke_dasharray="2 3")
    for percent in (0, 25, 50, 75, 100):
        picture.text(_RIGHT + 8, chance.y(percent) + 4, str(percent), anchor="start", fill=_QUIET)
    picture.text(_WIDTH - 12, rain.top + rain.height / 2, "Chance, %", turned=True, fill=_QUIET)

    gusts, mean = columns["wind_gusts_10m"], columns["wind_speed_10m"]
    wind = picture.panel(504, 152, 0, _span([*gusts, *mean])[1], f"Wind, {units['wind_speed_10m']}")
    wind.line(mean, stroke=_WIND, stroke_width="1.8")
    wind.line(gusts, stroke=_WIND, stroke_width="1.2", stroke_dasharray="6 3")
    for x, dashes, words in ((_RIGHT - 140, "none", "wind"), (_RIGHT - 68, "6 3", "gusts")):
        picture.path(f"M{x} 493h22", stroke=_WIND, stroke_width="1.6", stroke_dasharray=dashes)
        picture.text(x + 28, 497, words, anchor="start")
    picture.hours()
    return Xml.tostring(picture.root, encoding="unicode")


class _Picture:
    """The paper, and where on it a moment is."""

    def __init__(self, moments: Sequence[datetime]) -> None:
        # Clocks that change would fold the axis: it counts in the offset of the first hour.
        zone = moments[0].tzinfo if moments else None
        self.moments = [moment.astimezone(zone) for moment in moments]
        half = timedelta(minutes=30)
        self.first = self.moments[0] - half if moments else datetime.min
        last = self.moments[-1] + half if moments else datetime.max
        self.hour = (_RIGHT - _LEFT) / ((last - self.first) / timedelta(hours=1))
        size = {"width": str(_WIDTH), "height": str(_HEIGHT), "viewBox": f"0 0 {_WIDTH} {_HEIGHT}"}
        self.root = Xml.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", **size})
        self._add("rect", width="100%", height="100%", fill="#ffffff")

    def x(self, moment: datetime) -> float:
        return _LEFT + self.hour * ((moment - self.first) / timedelta(hours=1))

    def _add(self, kind: str, **attributes: str | float) -> Xml.Element:
        named = {name.replace("_", "-"): f"{value:.4g}" if isinstance(value, float) else str(value)
                 for name, value in attributes.items()}  # fmt: skip
        return Xml.SubElement(self.root, kind, named)

    def path(self, moves: str, **style: str) -> None:
        self._add("path", d=moves, fill="none", stroke_linecap="round", stroke_linejoin="round", **style)

    def rect(self, **attributes: str | float) -> None:
        self._add("rect", **attributes)

    def text(
        self, x: float, y: float, words: str, *, size: int = 12, anchor: str = "middle", fill: str = "#000000",
        turned: bool = False,
    ) -> None:  # fmt: skip
        turn = {"transform": f"rotate(-90 {x} {y})"} if turned else {}
        element = self._add("text", x=x, y=y, font_size=size, text_anchor=anchor, fill=fill, **turn)
        # XML has no way to write a control character.
        element.text = "".join(letter if letter.isprintable() else " " for letter in words)

    def panel(self, top: float, height: float, low: float, high: float, name: str) -> _Panel:
        made = _Panel(self, top, height, low, high)
        step = _step(high - low, 6)
        for count in range(math.ceil(low / step), math.floor(high / step) + 1):
            y = made.y(count * step)
            self.path(f"M{_LEFT} {y:.1f}H{_RIGHT}", stroke=_FAINT)
            self.text(_LEFT - 8, y + 4, f"{count * step:.10g}", anchor="end")
        for moment in self.moments[1:]:
            if moment.hour == 0:
                self.path(f"M{self.x(moment):.1f} {top}v{height}", stroke=_QUIET, stroke_opacity="0.5")
        self.path(f"M{_LEFT} {top}v{height}H{_RIGHT}", stroke=_QUIET)
        self.text(26, top + height / 2, name, turned=True)
        return made

    def hours(self) -> None:
        """Times below the last panel: as many as fit, and a day's name at its midnight."""
        step = next((step for step in (1, 2, 3, 6, 12) if len(self.moments) <= 14 * step), 24)
        for number, moment in enumerate(self.moments):
            if moment.hour % step == 0:
                x = self.x(moment)
                self.path(f"M{x:.1f} {_BOTTOM}v4", stroke=_QUIET)
                self.text(x, _BOTTOM + 18, f"{moment:%H:%M}")
            if moment.hour == 0 or (number == 0 and (24 - moment.hour) * self.hour > 100):
                self.text(self.x(moment), _BOTTOM + 35, f"{moment:%a %d %b}")


@dataclass(frozen=True)
class _Panel:
    picture: _Picture
    top: float
    height: float
    low: float
    high: float

    def y(self, value: float) -> float:
        return self.top + self.height * (self.high - value) / (self.high - self.low)

    def line(self, values: Sequence[float], **style: str) -> None:
        pairs = zip(self.picture.moments, values, strict=True)
        for known, run in groupby(pairs, key=lambda pair: not math.isnan(pair[1])):
            if known:
                points = [f"{self.picture.x(moment):.1f} {self.y(value):.1f}" for moment, value in run]
                # A lone point is a line of no length, which its round caps make a dot.
                self.picture.path("M" + "L".join(points if len(points) > 1 else points * 2), **style)

    def bars(self, values: Sequence[float], **style: str) -> None:
        width = self.picture.hour * 0.9
        for moment, value in zip(self.picture.moments, values, strict=True):
            if value > 0:
                y = self.y(value)
                x = self.picture.x(moment) - width / 2
                self.picture.rect(x=x, y=y, width=width, height=self.top + self.height - y, **style)


def _floats(values: Sequence[Value]) -> list[float]:
    return [float(value) if isinstance(value, int | float) else math.nan for value in values]


def _span(values: Sequence[float]) -> tuple[float, float]:
    """The least and the greatest of `values`, with some air."""
    known = [value for value in values if not math.isnan(value)] or [0.0, 1.0]
    air = max((max(known) - min(known)) * 0.08, 0.5)
    return min(known) - air, max(known) + air


def _step(span: float, most: int) -> float:
    """A round distance between at most so many marks: one, two or five of a power of ten."""
    power = 10.0 ** math.floor(math.log10(span / most))
    return next(power * times for times in (1, 2, 5, 10) if span / (power * times) <= most)
