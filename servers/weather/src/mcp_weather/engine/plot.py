"""A forecast as a picture: temperature, precipitation, wind. The plotting library is imported on first use."""

from __future__ import annotations

import io
import logging
import math
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from mcp_weather.models import Table, Value

__all__ = ["SERIES", "png"]

SERIES = ("temperature_2m", "precipitation", "precipitation_probability", "wind_speed_10m", "wind_gusts_10m")

_WARM, _WET, _WIND, _QUIET = "#c2410c", "#1d4ed8", "#15803d", "#6b7280"


def png(table: Table, title: str) -> bytes:
    """`table` with `SERIES` over time as a PNG of about 1000 by 700 pixels; a gap is a gap. Blocks for a second."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
    from matplotlib.figure import Figure as Figure_

    Figure: Any = Figure_  # Its types say less than nothing.

    moments = [datetime.fromisoformat(time) for time in table.time]
    zone = moments[0].tzinfo if moments else None
    # Clocks that change would fold the axis: it counts in the offset of the first hour.
    moments = [moment.astimezone(zone) for moment in moments]
    columns = {name: _floats(values) for name, values in zip(table.names, table.values, strict=True)}
    units = dict(zip(table.names, table.units, strict=True))
    figure = Figure(figsize=(10, 7), dpi=100, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(3, 1, sharex=True, height_ratios=(3, 2, 2))
    figure.suptitle(title, fontsize=13, fontweight="bold", x=0.01, ha="left")

    heat, rain, wind = axes
    heat.plot(moments, columns["temperature_2m"], color=_WARM, linewidth=2.2)
    heat.set_ylabel(f"Temperature, {units['temperature_2m']}")
    rain.bar(moments, columns["precipitation"], width=1 / 26, color=_WET, alpha=0.85)
    rain.set_ylabel(f"Precipitation, {units['precipitation']}")
    rain.set_ylim(0, max([1.0, *(value for value in columns["precipitation"] if not math.isnan(value))]) * 1.15)
    chance = rain.twinx()
    chance.plot(moments, columns["precipitation_probability"], color=_QUIET, linewidth=1, linestyle=":")
    chance.set_ylim(0, 100)
    chance.set_ylabel("Chance, %", color=_QUIET)
    wind.plot(moments, columns["wind_speed_10m"], color=_WIND, linewidth=1.8, label="wind")
    wind.plot(moments, columns["wind_gusts_10m"], color=_WIND, linewidth=1, linestyle="--", label="gusts")
    wind.set_ylim(bottom=0)
    wind.set_ylabel(f"Wind, {units['wind_speed_10m']}")
    wind.legend(frameon=False, fontsize=8, loc="upper right")
    for axis in axes:
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
        for number, moment in enumerate(moments):
            if number and moment.hour == 0:
                axis.axvline(moment, color=_QUIET, linewidth=0.8, alpha=0.5)
    locator = AutoDateLocator(tz=zone)
    wind.xaxis.set_major_locator(locator)
    wind.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=zone))
    note = f"{table.origin.source}, {table.origin.licence}" + (
        f" - STALE, {table.origin.age_s} s old" if table.origin.stale else ""
    )
    figure.text(0.995, 0.99, note, ha="right", va="top", fontsize=8, color=_QUIET)
    written = io.BytesIO()
    figure.savefig(written, format="png")
    return written.getvalue()


def _floats(values: Sequence[Value]) -> list[float]:
    return [float(value) if isinstance(value, int | float) else float("nan") for value in values]
