"""Which time each of Open-Meteo's variables is of: a moment, or the time before it (https://open-meteo.com/en/docs).

Amounts, gusts and chances are told at the end of the time that they are of. Rows here begin at their time, so those
values move to the row before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta, tzinfo
from enum import Enum
from typing import Any, NamedTuple

__all__ = ["DAY_VALUES", "DayValue", "Interval", "hours_of_day", "interval_of", "move_to_beginning"]

# Open-Meteo counts an hour as wet above this.
_WET_MM = 0.001
_MEGAJOULES_PER_WATT_HOUR = 0.0036


class Interval(Enum):
    """What a value is of, where its series has one for each step."""

    INSTANT = "instant"
    SUM = "sum of the step before"
    MEAN = "mean of the step before"
    MAXIMUM = "maximum of the step before"
    PROBABILITY = "probability for the step before"


_INTERVALS = {
    "precipitation": Interval.SUM, "rain": Interval.SUM, "showers": Interval.SUM, "snowfall": Interval.SUM,
    "sunshine_duration": Interval.SUM, "et0_fao_evapotranspiration": Interval.SUM,
    "shortwave_radiation": Interval.MEAN, "wind_gusts_10m": Interval.MAXIMUM,
    "precipitation_probability": Interval.PROBABILITY,
}  # fmt: skip


class DayValue(NamedTuple):
    """How the value of a day comes from those of its hours.

    Attributes:
        variable: of the hours.
    """

    variable: str
    combine: Callable[[Sequence[float]], float]


def _count_wet(amounts: Sequence[float]) -> float:
    return sum(1 for amount in amounts if amount > _WET_MM)


def _sum_radiation(means: Sequence[float]) -> float:
    """Return the megajoules of hours, of each of which the watts are known."""
    return sum(means) * _MEGAJOULES_PER_WATT_HOUR


# The service adds up the hours that are called 00:00 to 23:00, so its days go from 23:00 to 23:00.
DAY_VALUES = {
    "precipitation_sum": DayValue("precipitation", sum),
    "rain_sum": DayValue("rain", sum),
    "showers_sum": DayValue("showers", sum),
    "snowfall_sum": DayValue("snowfall", sum),
    "precipitation_hours": DayValue("precipitation", _count_wet),
    "precipitation_probability_max": DayValue("precipitation_probability", max),
    "wind_gusts_10m_max": DayValue("wind_gusts_10m", max),
    "sunshine_duration": DayValue("sunshine_duration", sum),
    "et0_fao_evapotranspiration": DayValue("et0_fao_evapotranspiration", sum),
    "shortwave_radiation_sum": DayValue("shortwave_radiation", _sum_radiation),
}


def interval_of(name: str) -> Interval:
    """Return what the values of a variable are of; the members of an ensemble are called `rain_member01`."""
    return _INTERVALS.get(name.partition("_member")[0], Interval.INSTANT)


def move_to_beginning(name: str, values: Sequence[Any], seconds: Sequence[Any], step_seconds: int) -> Sequence[Any]:
    """Return the value of each row by the row's beginning: of amounts and their like that of one step later.

    Args:
        seconds: the times of the rows since the epoch. A row without a successor has nothing.
    """
    if interval_of(name) is Interval.INSTANT:
        return values
    by_time: dict[float, Any] = {}
    for moment, value in zip(seconds, values, strict=True):
        if isinstance(moment, int | float):
            by_time.setdefault(moment, value)
    moved: list[Any] = []
    for moment in seconds:
        if isinstance(moment, int | float):
            moved.append(by_time.get(moment + step_seconds))
        else:
            moved.append(None)
    return moved


def hours_of_day(day: date, zone: tzinfo) -> tuple[float, float]:
    """Return when `day` begins and ends, in seconds since the epoch; it has 23, 24 or 25 hours."""
    begin = datetime.combine(day, time.min, zone).timestamp()
    end = datetime.combine(day + timedelta(days=1), time.min, zone).timestamp()
    return begin, end
