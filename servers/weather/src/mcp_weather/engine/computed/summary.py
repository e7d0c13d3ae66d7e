"""Sums up a forecast: sums, extremes and first occurrences, so that no model has to add up columns."""

from __future__ import annotations

from mcp_weather.engine.computed.series import rounded
from mcp_weather.models import Table, Value

__all__ = ["summary"]

_SUMS = ("precipitation", "rain", "showers", "snowfall")
_EXTREMES = ("temperature_2m", "temperature", "apparent_temperature", "wind_speed_10m", "wind_speed", "wind_gusts_10m")
_WET = {"mm": 0.1, "cm": 0.1, "inch": 0.0039}
"""In an hour, from where it counts; the WMO's trace is less."""
_SNOWY = 0.039
"""The same of snow in inches."""


def summary(table: Table, steps: str = "hours") -> list[str]:
    """One line for each quantity that can be summed up; what is partly unknown says so.

    Args:
        steps: what the rows of the table are.
    """
    lines: list[str] = []
    for name, unit, values in zip(table.names, table.units, table.values, strict=True):
        known = [
            (value, time) for value, time in zip(values, table.time, strict=True) if isinstance(value, int | float)
        ]
        if not known or name not in (*_SUMS, *_EXTREMES):
            continue
        missing = f"; {len(values) - len(known)} of {len(values)} {steps} unknown" if len(known) < len(values) else ""
        if name in _SUMS:
            least = _SNOWY if name == "snowfall" and unit == "inch" else _WET.get(unit, 0.1)
            wet = [time for value, time in known if value >= least]
            first = f", first {wet[0]}, {len(wet)} {steps}" if wet else ""
            lines.append(f"{name}: sum {_text(sum(value for value, _ in known))} {unit}{first}{missing}")
        else:
            low, high = min(known), max(known, key=lambda item: item[0])
            lines.append(f"{name}: {_text(low[0])} ({low[1]}) to {_text(high[0])} {unit} ({high[1]}){missing}")
    return lines


def _text(value: Value) -> str:
    return f"{rounded(float(value or 0)) + 0.0:g}"
