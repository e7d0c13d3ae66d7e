"""High and low water, from the level of the sea by hour."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Literal, NamedTuple

from mcp_weather.models import Table, Value

__all__ = ["SEA_LEVEL", "describe_tides"]

SEA_LEVEL = "sea_level_height_msl"
# Two days of most coasts.
_MAX_LISTED = 8
# A sea whose level differs by less than this part of a metre has weather and no tide to speak of.
_MIN_RANGE = {"m": 0.2, "ft": 0.7}
# Where the level changes by less before it goes back, it was wind or rounding that turned it.
_MIN_CHANGE = {"m": 0.1, "ft": 0.35}
_height_of = attrgetter("height")


class _Level(NamedTuple):
    """The level of the sea at a time."""

    height: float
    time: str


class _Turn(NamedTuple):
    """A level at which the water turns."""

    kind: Literal["high", "low"]
    level: _Level


def describe_tides(table: Table) -> str | None:
    """Return when the water is high and low, to about an hour; None where there is no tide or it is not known."""
    if SEA_LEVEL not in table.names:
        return None
    column = table.names.index(SEA_LEVEL)
    unit = table.units[column]
    heights = [height for height in table.values[column] if isinstance(height, int | float)]
    if not heights or max(heights) - min(heights) < _MIN_RANGE.get(unit, 0.0):
        return None
    turns: list[_Turn] = []
    for levels in _split_at_gaps(table.values[column], table.time):
        turns += _find_turns(levels, _MIN_CHANGE.get(unit, 0.0))
    if not turns:
        return None
    times = ", ".join(f"{turn.kind} {turn.level.time} ({turn.level.height:g} {unit})" for turn in turns[:_MAX_LISTED])
    if len(turns) > _MAX_LISTED:
        times += f"; {len(turns) - _MAX_LISTED} more below, in {SEA_LEVEL}"
    return f"[High and low water to about an hour: {times}. Above mean sea level and from a model: not for navigation.]"


def _split_at_gaps(heights: Sequence[Value], times: Sequence[str]) -> list[list[_Level]]:
    """Return the levels of the hours between those of which nothing is known: in these the water may turn."""
    runs: list[list[_Level]] = [[]]
    for height, time in zip(heights, times, strict=True):
        if isinstance(height, int | float):
            runs[-1].append(_Level(height, time))
        else:
            runs.append([])
    return runs


def _find_turns(levels: Sequence[_Level], min_change: float) -> list[_Turn]:
    """Return the levels before and after which the water rises or falls by at least `min_change`."""
    turns: list[_Turn] = []
    direction: Literal["rising", "falling"] | None = None
    highest = lowest = None
    for level in levels:
        highest = max(highest or level, level, key=_height_of)
        lowest = min(lowest or level, level, key=_height_of)
        if direction != "falling" and highest.height - level.height >= min_change:
            if direction == "rising":
                turns.append(_Turn("high", highest))
            direction = "falling"
            lowest = level
        elif direction != "rising" and level.height - lowest.height >= min_change:
            if direction == "falling":
                turns.append(_Turn("low", lowest))
            direction = "rising"
            highest = level
    return turns
