"""Sums up a forecast: sums, extremes and first occurrences, so that no model has to add up columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mcp_weather.engine.computed.unit_conversion import round_significantly
from mcp_weather.models import Table

__all__ = ["summarize"]

_SUMMED = ("precipitation", "rain", "showers", "snowfall")
_EXTREMES = ("temperature_2m", "temperature", "apparent_temperature", "wind_speed_10m", "wind_speed", "wind_gusts_10m")
# The least precipitation of an hour that counts; the WMO's trace is less.
_MIN_PRECIPITATION = {"mm": 0.1, "cm": 0.1, "inch": 0.0039}
_MIN_SNOWFALL_INCHES = 0.039


class _TimedNumber(NamedTuple):
    """A number and the time of its row. Numbers sort before times."""

    number: float
    time: str


def summarize(table: Table, steps: str = "hours") -> list[str]:
    """Return one line for each quantity that can be summed up; what is partly unknown says so.

    Args:
        steps: what the rows of the table are.
    """
    lines: list[str] = []
    for name, unit, values in zip(table.names, table.units, table.values, strict=True):
        numbers: list[_TimedNumber] = []
        for value, time in zip(values, table.time, strict=True):
            if isinstance(value, int | float):
                numbers.append(_TimedNumber(value, time))
        if not numbers:
            continue
        if name in _SUMMED:
            line = _describe_sum(name, unit, numbers, steps)
        elif name in _EXTREMES:
            line = _describe_extremes(name, unit, numbers)
        else:
            continue
        unknown = len(values) - len(numbers)
        if unknown:
            line += f"; {unknown} of {len(values)} {steps} unknown"
        lines.append(line)
    return lines


def _describe_sum(name: str, unit: str, numbers: Sequence[_TimedNumber], steps: str) -> str:
    least = _MIN_PRECIPITATION.get(unit, 0.1)
    if name == "snowfall" and unit == "inch":
        least = _MIN_SNOWFALL_INCHES
    total = sum(item.number for item in numbers)
    line = f"{name}: sum {_format_number(total)} {unit}"
    wet_times = [item.time for item in numbers if item.number >= least]
    if wet_times:
        line += f", first {wet_times[0]}, {len(wet_times)} {steps}"
    return line


def _describe_extremes(name: str, unit: str, numbers: Sequence[_TimedNumber]) -> str:
    lowest = min(numbers)
    highest = max(numbers, key=lambda item: item.number)
    low = f"{_format_number(lowest.number)} ({lowest.time})"
    return f"{name}: {low} to {_format_number(highest.number)} {unit} ({highest.time})"


def _format_number(number: float) -> str:
    return f"{round_significantly(float(number)) + 0.0:g}"
