"""High and low water, from the level of the sea by hour."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from mcp_weather.models import Table

__all__ = ["SEA_LEVEL", "describe_tides"]

SEA_LEVEL = "sea_level_height_msl"
# Two days of most coasts.
_MAX_LISTED = 8
# A sea whose level differs by less than this part of a metre has weather and no tide to speak of.
_MIN_RANGE = {"m": 0.2, "ft": 0.7}


class _Level(NamedTuple):
    """The level of the sea at a time."""

    height: float
    time: str


def describe_tides(table: Table) -> str | None:
    """Return when the water is high and low, to about an hour; None where there is no tide or it is not known."""
    if SEA_LEVEL not in table.names:
        return None
    column = table.names.index(SEA_LEVEL)
    unit = table.units[column]
    runs: list[list[_Level]] = [[]]
    for height, time in zip(table.values[column], table.time, strict=True):
        if isinstance(height, int | float):
            runs[-1].append(_Level(height, time))
        else:
            # The water may turn in an hour of which nothing is known.
            runs.append([])
    heights = [level.height for run in runs for level in run]
    if not heights or max(heights) - min(heights) < _MIN_RANGE.get(unit, 0.0):
        return None
    turns = [turn for run in runs for turn in _find_turns(run)]
    if not turns:
        return None
    listed = ", ".join(f"{kind} {level.time} ({level.height:g} {unit})" for kind, level in turns[:_MAX_LISTED])
    return f"[Tides to about an hour: {listed}. Above mean sea level and from a model: not for navigation.]"


def _find_turns(levels: Sequence[_Level]) -> list[tuple[str, _Level]]:
    """Return the levels at which the water turns, each as high or low."""
    turns: list[tuple[str, _Level]] = []
    distinct = [level for before, level in pairwise(levels) if level.height != before.height]
    distinct = [*levels[:1], *distinct]
    for before, level, after in zip(distinct, distinct[1:], distinct[2:], strict=False):
        if before.height < level.height > after.height:
            turns.append(("high", level))
        elif before.height > level.height < after.height:
            turns.append(("low", level))
    return turns
