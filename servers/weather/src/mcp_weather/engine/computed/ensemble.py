"""How sure a forecast is: what nine in ten members of an ensemble of forecasts say, hour by hour."""

from __future__ import annotations

from typing import Any, cast

from mcp_weather.engine.computed.series import table
from mcp_weather.models import Origin, Table, Value
from mcp_weather.policy import Units

__all__ = ["spread"]

_PARTS = ((10, "p10"), (50, "median"), (90, "p90"))
_LEAST_MEMBERS = 5


def spread(document: dict[str, Any], units: Units, from_: Origin, *, now: float) -> Table:
    """The 10th, 50th and 90th percentile of each variable over the members; null where few members know."""
    whole = table(document, "hourly", units, from_, now=now)
    members: dict[str, list[int]] = {}
    for number, name in enumerate(whole.names):
        members.setdefault(name.partition("_member")[0], []).append(number)
    names: list[str] = []
    said: list[str] = []
    values: list[list[Value]] = []
    for variable, numbers in members.items():
        ordered = [
            sorted(
                cast("float", whole.values[number][hour])
                for number in numbers
                if isinstance(whole.values[number][hour], int | float)
            )
            for hour in range(len(whole.time))
        ]
        for part, word in _PARTS:
            names.append(f"{variable}_{word}")
            said.append(whole.units[numbers[0]])
            values.append([_percentile(items, part) for items in ordered])
    return whole.model_copy(update={"names": names, "units": said, "values": values})


def _percentile(ordered: list[float], part: int) -> float | None:
    """Between the two nearest members, as far as it is between them."""
    if len(ordered) < _LEAST_MEMBERS:
        return None
    position = (len(ordered) - 1) * part / 100
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return round(ordered[low] + (ordered[high] - ordered[low]) * (position - low), 2) + 0.0
