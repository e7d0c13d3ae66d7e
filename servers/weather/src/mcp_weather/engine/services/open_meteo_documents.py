"""What Open-Meteo's documents say: columns with units, times in the place's zone, and gaps left as gaps.

Rows begin at their time: amounts, gusts and chances are of the step that follows it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from datetime import date
from typing import Any, Literal, cast

from mcp_weather.engine.computed.columns import Column, as_number, make_reading, make_table
from mcp_weather.engine.computed.timestamps import format_timestamp, moment_at, zone_of
from mcp_weather.engine.computed.unit_conversion import UNKNOWN_UNIT, convert_values, is_precipitation
from mcp_weather.engine.json_values import as_object
from mcp_weather.engine.services.source import Source
from mcp_weather.engine.services.variable_intervals import (
    DAY_VALUES,
    Interval,
    hours_of_day,
    interval_of,
    move_to_beginning,
)
from mcp_weather.models import Origin, Reading, Table
from mcp_weather.policy.units import Units

__all__ = ["OPEN_METEO", "Step", "has_values", "label_days", "label_moments", "read_present", "read_table"]

OPEN_METEO = Source("Open-Meteo.com", "CC BY 4.0")

Step = Literal["hourly", "daily", "minutely_15"]

# Where clocks differ by half an hour, hours may begin at half past of the world's.
_STEP_SECONDS: dict[Step, int] = {"hourly": 3600, "daily": 86_400, "minutely_15": 900}
_NOT_VARIABLES = ("time", "interval")
_SIX_HOURS = 6 * 3600


def read_present(document: dict[str, Any], units: Units, origin: Origin) -> Reading:
    """Return the present values of a document."""
    current = as_object(document["current"])
    unit_names = as_object(document.get("current_units"))
    columns: list[Column] = []
    periods: dict[str, str] = {}
    for name, value in current.items():
        if name in _NOT_VARIABLES:
            continue
        columns.append(_read_column(name, [value], unit_names, units))
        if interval_of(name) is not Interval.INSTANT:
            periods[name] = _describe_period(current.get("interval"))
    seconds = current.get("time")
    observed_at = None
    if isinstance(seconds, int | float):
        observed_at = format_timestamp(seconds, zone_of(document))
    return make_reading(columns, observed_at=observed_at, origin=origin).model_copy(update={"periods": periods or None})


def _describe_period(seconds: Any) -> str:
    """Return which time a present amount is of, by the `interval` of its document."""
    length = as_number(seconds) or _STEP_SECONDS["minutely_15"]
    return f"in the last {length / 60:g} min"


def read_table(
    document: dict[str, Any], step: Step, units: Units, origin: Origin, *, now: float | None = None
) -> Table:
    """Return the series of a document, each row by its beginning; what ended by `now` is left out.

    So is the last row if a series in it is told at the end of a row: of that one only the next document has the value.
    """
    series = as_object(document[step])
    seconds = cast("list[Any]", series["time"])
    variables = {name: values for name, values in series.items() if name != "time"}
    if step == "daily":
        variables = _recount_days(document, seconds, variables)
    else:
        variables = {
            name: move_to_beginning(name, values, seconds, _STEP_SECONDS[step]) for name, values in variables.items()
        }
    rows = _choose_rows(_label_rows(step, seconds, document), seconds, _STEP_SECONDS[step], now)
    has_moved = step != "daily" and any(interval_of(name) is not Interval.INSTANT for name in variables)
    if has_moved:
        rows = {label: row for label, row in rows.items() if row != len(seconds) - 1}
    unit_names = as_object(document.get(f"{step}_units"))
    columns: list[Column] = []
    for name, values in variables.items():
        columns.append(_read_column(name, [values[row] for row in rows.values()], unit_names, units))
    return make_table(rows, columns, origin)


def _choose_rows(
    labels: Sequence[str | None], seconds: Sequence[Any], step_seconds: int, now: float | None
) -> dict[str, int]:
    """Return the rows to show by their labels, without those that ended by `now`."""
    rows: dict[str, int] = {}
    for row, label in enumerate(labels):
        # A row without a time says nothing, nor does one whose time was there before: two days that are one.
        if label is None or label in rows:
            continue
        if now is not None and seconds[row] + step_seconds <= now:
            continue
        rows[label] = row
    return rows


def _recount_days(
    document: dict[str, Any], seconds: Sequence[Any], variables: dict[str, Sequence[Any]]
) -> dict[str, Sequence[Any]]:
    """Return the values of days from midnight to midnight, where the document has all hours of a day.

    Its own are those of hours that are told at their end, so they go from 23:00 to 23:00.
    """
    hourly = as_object(document.get("hourly"))
    hours = hourly.get("time")
    if not isinstance(hours, list):
        return variables
    recounted = dict(variables)
    for name, values in variables.items():
        amounts = _read_hours(hourly, name)
        if amounts is None:
            continue
        days: list[Any] = []
        for label, value in zip(label_days(seconds, document), values, strict=True):
            day_value = None
            if label is not None:
                day_value = _count_day(name, amounts, date.fromisoformat(label), document)
            days.append(value if day_value is None else day_value)
        recounted[name] = days
    return recounted


def _read_hours(hourly: dict[str, Any], name: str) -> dict[float, float] | None:
    """Return the hours behind a value of days by their beginnings, in seconds; None if the document has none."""
    day_value = DAY_VALUES.get(name)
    if day_value is None:
        return None
    moments = cast("list[Any]", hourly["time"])
    values = hourly.get(day_value.variable)
    if not _is_list_of(values, len(moments)):
        return None
    amounts: dict[float, float] = {}
    for moment, value in zip(moments, cast("list[Any]", values), strict=True):
        amount = as_number(value)
        if amount is None or not isinstance(moment, int | float):
            continue
        if is_precipitation(day_value.variable):
            amount = max(amount, 0.0)
        amounts[moment - _STEP_SECONDS["hourly"]] = amount
    return amounts


def _count_day(name: str, amounts: dict[float, float], day: date, document: dict[str, Any]) -> float | None:
    """Return the value of the hours that begin on one day; None if one of them is not known."""
    begin, end = hours_of_day(day, zone_of(document))
    day_amounts = {moment: amount for moment, amount in amounts.items() if begin <= moment < end}
    if not day_amounts:
        return None
    hour = _STEP_SECONDS["hourly"]
    # The hours of a service need not begin at the place's midnight, so a day may have the most of 25 of them.
    first = begin + (min(day_amounts) - begin) % hour
    if len(day_amounts) < math.ceil((end - first) / hour):
        return None
    return round(DAY_VALUES[name].combine(list(day_amounts.values())), 2)


def _is_list_of(value: Any, length: int) -> bool:
    return isinstance(value, list) and len(cast("list[Any]", value)) == length


def has_values(document: dict[str, Any], step: Step, variables: Collection[str]) -> bool:
    """Return whether any of the series of a document that are called like one of `variables` knows anything.

    One that is zero throughout does not: some models of the sea say so on land.
    """
    for name, values in as_object(document.get(step)).items():
        if name not in variables or not isinstance(values, list):
            continue
        if any(as_number(value) for value in cast("list[Any]", values)):
            return True
    return False


def _label_rows(step: Step, seconds: Sequence[Any], document: dict[str, Any]) -> list[str | None]:
    if step == "daily":
        return label_days(seconds, document)
    return label_moments(seconds, document)


def label_moments(seconds: Sequence[Any], document: dict[str, Any]) -> list[str | None]:
    """Return the moments that are `seconds` after the epoch; None for what is no number."""
    zone = zone_of(document)

    def label(moment: Any) -> str | None:
        if not isinstance(moment, int | float):
            return None
        return format_timestamp(moment, zone)

    return [label(moment) for moment in seconds]


def label_days(seconds: Sequence[Any], document: dict[str, Any]) -> list[str | None]:
    """Return the days that begin at `seconds`; None for what is no number.

    The document's offset is that of one day of the span, so a change of clocks moves the others by an hour. Six hours
    later it is the same day whichever it was.
    """
    offset = int(document.get("utc_offset_seconds") or 0) + _SIX_HOURS

    def label(midnight: Any) -> str | None:
        if not isinstance(midnight, int | float):
            return None
        return moment_at(midnight + offset).date().isoformat()

    return [label(midnight) for midnight in seconds]


def _read_column(name: str, values: Sequence[Any], unit_names: dict[str, Any], units: Units) -> Column:
    unit = unit_names.get(name)
    if not isinstance(unit, str):
        unit = UNKNOWN_UNIT
    converted = convert_values(name, values, unit, units)
    # A weather code has become words.
    return Column(name.replace("weather_code", "weather"), converted.unit, converted.values)
